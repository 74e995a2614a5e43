"""From the platform's pages of rows to a file, without Airflow."""
