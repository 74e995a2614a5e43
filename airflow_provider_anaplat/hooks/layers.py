"""What the Test button tries: one layer after the other, each named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_anaplat import errors

if TYPE_CHECKING:
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.client.models import Dataset

__all__ = [
    "find_bad_layer",
    "try_layers",
]

# The layer that failed; the first type that fits counts.
_LAYERS: tuple[tuple[type[errors.AnaplatError], str], ...] = (
    (errors.AnaplatSettingsError, "Address"),
    (errors.AnaplatSignInError, "Sign-in"),
    (errors.AnaplatAuthenticationError, "Token"),
    (errors.AnaplatPermissionError, "Token"),
    (errors.AnaplatInvalidAnswerError, "Envelope"),
    (errors.AnaplatRefusedError, "HTTP"),
    (errors.AnaplatRedirectError, "HTTP"),
)
_MOST_DATASETS = 10  # whose columns are tried, if the user may not see some
_NO_RIGHT = (1002, 1004)  # codes of the platform: no such dataset for this user, and no permission
_SAME_CLOCK = 2.0  # seconds: an HTTP date is cut off to a second, and takes time to arrive


def try_layers(connect: Callable[[], AnaplatClient]) -> tuple[bool, str]:
    """Return whether all is good, and a sentence for each layer.

    :param connect: makes a client
    """
    error, message = find_bad_layer(connect)
    return error is None, message


def find_bad_layer(connect: Callable[[], AnaplatClient]) -> tuple[Exception | None, str]:
    """Return the error of the first layer that is not good, if one is not, and a sentence for each layer.

    :param connect: makes a client
    """
    good: list[str] = []
    failed: Exception
    try:
        with closing(connect()) as client:
            _try(client, good)
    except errors.AnaplatError as error:
        failed, told = error, f"{_layer(error)}: {error}"
    except Exception as error:  # noqa: BLE001 - the person who presses Test shall read it, whatever it is
        failed, told = error, f"Unexpected: {type(error).__name__} ({error})"
    else:
        return None, " ".join(good)
    return failed, " ".join([told, *(["What is good:"] if good else []), *good])


def _try(client: AnaplatClient, good: list[str]) -> None:
    """Try each layer, and add what is good about it."""
    datasets = client.list_datasets()
    count = "1 dataset" if len(datasets) == 1 else f"{len(datasets)} datasets"
    good.append(f"The platform answers, and the token is good for {count}.")
    if client.login:
        client.sign_in()
        good.append(f"Signing in as {client.login!r} brings a user token.")
    good.append(_clocks(client))
    _header(client, datasets, good)


def _header(client: AnaplatClient, datasets: Sequence[Dataset], good: list[str]) -> None:
    """Try the token in the header with the columns of one dataset that its user may see."""
    if not datasets:
        good.append("The token in the header could not be tried, since the list shows no dataset.")
        return
    tried = [dataset.ds_id for dataset in datasets[:_MOST_DATASETS]]
    for ds_id in tried:
        try:
            client.get_columns(ds_id)
        except (errors.AnaplatPermissionError, errors.AnaplatNotFoundError) as error:
            if ds_id != tried[-1]:
                continue
            if _lacks_rights(error):
                good.append(
                    "The platform takes the token in the header; its user may see no dataset that was tried "
                    f"({', '.join(tried)})."
                )
            raise
        good.append(f"The token in the header is good: the columns of dataset {ds_id} can be read.")
        return


def _clocks(client: AnaplatClient) -> str:
    now = datetime.now(UTC)
    ahead = (client.earliest_platform_time(now) - now).total_seconds()
    if abs(ahead) <= _SAME_CLOCK:
        return "Its clock and the one here agree."
    return f"Its clock is {abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} the one here."


def _lacks_rights(error: errors.AnaplatError) -> bool:
    """Tell whether the platform knows who asks, and says by a code of its own that this user may not."""
    return error.operation == "get_columns" and error.code in _NO_RIGHT


def _layer(error: errors.AnaplatError) -> str:
    if _lacks_rights(error):
        return "Rights"
    name = getattr(error, "layer", None) or next(
        (name for kind, name in _LAYERS if isinstance(error, kind)), "HTTP"
    )
    if error.operation == "sign_in":
        return "Sign-in" if name in ("Token", "Sign-in") else f"Sign-in, {name}"
    if name != "Token":
        return str(name)
    return "Token in the header" if error.operation == "get_columns" else "Token in the body"
