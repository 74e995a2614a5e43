"""From frames of rows to a table of a database, in one transaction, without Airflow."""
