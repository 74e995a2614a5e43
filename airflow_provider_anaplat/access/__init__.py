"""Who may see what, without Airflow."""
