"""Airflow hooks of the Anaplat provider."""
