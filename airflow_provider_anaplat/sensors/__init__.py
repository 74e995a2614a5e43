"""Airflow sensors of the Anaplat provider."""
