"""What holds if nobody says otherwise: the client reads it, and so does the connection form."""

from __future__ import annotations

__all__ = [
    "CONNECT_TIMEOUT",
    "DATASET_URL",
    "MAX_ANSWER_MB",
    "MAX_RETRIES",
    "PAGE_URL",
    "READ_TIMEOUT",
    "REFRESH_PATH",
    "REFRESH_STYLE",
    "SIGN_IN_BODY",
    "SIGN_IN_PATH",
    "TASK_STATUS_PATH",
]

CONNECT_TIMEOUT = 10.0  # seconds
READ_TIMEOUT = 300.0  # seconds
MAX_RETRIES = 4
MAX_ANSWER_MB = 256

# Where platforms of this family take what the contract does not describe.
REFRESH_PATH = "/public-api/data-source/{dsId}/refresh"
REFRESH_STYLE = "post"
TASK_STATUS_PATH = "/public-api/task/status"
SIGN_IN_PATH = "/public-api/user/loginId/sign-in"
SIGN_IN_BODY = {"token": "{token}", "loginId": "{login}"}

# Where they are known to show a dataset and a page; the contract names no web address.
DATASET_URL = "{base_url}/data-center/data-sets/{dirId}/{dsId}/details/overview"
PAGE_URL = "{base_url}/page/{pgId}"
