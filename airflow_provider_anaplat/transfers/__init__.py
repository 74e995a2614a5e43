"""Airflow transfers of the Anaplat provider."""
