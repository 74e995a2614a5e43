"""Airflow operators of the Anaplat provider."""
