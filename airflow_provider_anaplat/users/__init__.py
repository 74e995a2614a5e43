"""Users in bulk, from where they are listed to the platform; nothing of Airflow is in here."""
