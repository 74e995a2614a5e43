"""Apache Airflow provider for an analytics platform's Public API."""

__version__ = "0.1.0"
