"""Create users in bulk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_anaplat.client.errors import AnaplatError
from airflow_provider_anaplat.operators.base import AnaplatOperator, no_retry_of_unknown_outcomes

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.client.models import NewUser


class AnaplatCreateUsersOperator(AnaplatOperator):
    """Create users in bulk (contract: operation 8).

    All users are checked before the first is sent. They go to the platform in batches, and each batch's
    answered count is compared with the number sent.

    :param users: the users, as a list of dictionaries under the contract's field names (``loginId``, ``name``,
        ``password``, ``role``, ``email``, ``mobile``, ``enabled``, ``userGroupIds``,
        ``userDefinedProperties``) or theirs in snake_case; give a list or an XComArg, never JSON text, since
        Airflow hides passwords in a list alone (templated)
    :param user_property_type: sent as ``userPropertyType``; the contract leaves its values open (templated)
    :param batch_size: users a request creates at most
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``created``, the number of users, and ``batches``, the number of requests.

    Raises :class:`AirflowFailException` listing every problem of every user, by index and without any
    password, where nothing was sent; the same, which Airflow does not retry, where a batch's answer was lost
    or reports another number of users than were sent; and :class:`AnaplatError` where the platform refuses.
    The log says what was created until then.
    """

    template_fields: Sequence[str] = ("users", "user_property_type", "anaplat_conn_id")

    def __init__(
        self,
        *,
        users: Sequence[Mapping[str, Any]],
        user_property_type: int | None = None,
        batch_size: int = 200,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.users = users
        self.user_property_type = user_property_type
        self.batch_size = batch_size

    def execute(self, context: Context) -> dict[str, Any]:
        """Check all users, then create them."""
        if self.batch_size < 1:
            raise AirflowFailException(f"batch_size is {self.batch_size}; it must be at least 1.")
        users = _checked(self.users)
        batches = [users[start : start + self.batch_size] for start in range(0, len(users), self.batch_size)]
        client = self.client()
        created = 0
        for number, batch in enumerate(batches, 1):
            try:
                created += self._create(client, batch)
            except (AnaplatError, AirflowFailException):
                self.log.error(
                    "Batch %d of %d failed (loginId %s to %s); the %d users of the batches before it are created",
                    number, len(batches), batch[0].login_id, batch[-1].login_id, created,
                )  # fmt: skip
                raise
            self.log.info("Created %d of %d users", created, len(users))
        return {"created": created, "batches": len(batches)}

    def _create(self, client: AnaplatClient, batch: Sequence[NewUser]) -> int:
        property_type = None if self.user_property_type is None else int(self.user_property_type)
        with no_retry_of_unknown_outcomes():
            answer = client.create_users(batch, user_property_type=property_type)
        if answer.count != len(batch):
            reported = "no number" if answer.count is None else f"{answer.count} as created"
            raise AirflowFailException(
                f"{len(batch)} users were sent, and the platform reports {reported} ({answer.message!r}). "
                f"Look on the platform which of them exist (loginId {batch[0].login_id} to "
                f"{batch[-1].login_id}) before you run the task again."
            )
        return answer.count


def _checked(users: Any) -> list[NewUser]:
    """Return the users as records.

    :raises AirflowFailException: with every problem of every user
    """
    from pydantic import ValidationError

    from airflow_provider_anaplat.client.models import NewUser

    if isinstance(users, str) or not isinstance(users, Sequence):
        raise AirflowFailException(
            f"users is a {type(users).__name__} where a list of dictionaries is due. A template renders to text "
            "unless the DAG has render_template_as_native_obj=True; give the list itself, or task.output."
        )
    records: list[NewUser] = []
    problems: list[str] = []
    first_index: dict[str, int] = {}
    for index, user in enumerate(users):
        try:
            record = NewUser.model_validate(user)
        except ValidationError as error:
            problems += [
                f"users[{index}].{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in error.errors(include_input=False, include_url=False)
            ]
            continue
        if first_index.setdefault(record.login_id, index) != index:
            problems.append(f"users[{index}].loginId: the same as that of users[{first_index[record.login_id]}]")
        records.append(record)
    if problems:
        raise AirflowFailException(
            f"{len(problems)} problems in {len(users)} users; none was sent.\n" + "\n".join(problems)
        )
    return records
