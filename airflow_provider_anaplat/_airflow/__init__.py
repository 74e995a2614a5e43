"""What the parts for Airflow share."""
