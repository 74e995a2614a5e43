"""Airflow triggers of the Anaplat provider."""
