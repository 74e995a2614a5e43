"""The creation of datasets; nothing of Airflow is in here."""

from typing import Literal

# If the answer to a write was lost and the platform does not show it: fail, or let a repetition send it again.
InDoubt = Literal["fail", "resend"]
