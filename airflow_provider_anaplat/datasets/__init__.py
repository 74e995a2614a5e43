"""The creation of datasets; nothing of Airflow is in here."""
