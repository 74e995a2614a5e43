"""Who may see and export what: a report of it, and what is different from an earlier one."""

from airflow_provider_anaplat.access.changes import Changes, Comparison
from airflow_provider_anaplat.access.report import AccessQuery, AccessSummary, write_access_report

__all__ = ["AccessQuery", "AccessSummary", "Changes", "Comparison", "write_access_report"]
