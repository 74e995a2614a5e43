"""Create users in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

from airflow_provider_anaplat._airflow.paths import path_of
from airflow_provider_anaplat._airflow.queries import query
from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat._airflow.task_state import folder_state, task_state
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.operators.base import AnaplatOperator

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.client.client import PasswordEncoding
    from airflow_provider_anaplat.state import StateStore
    from airflow_provider_anaplat.users.provision import InDoubt, OnExisting, OnRejected, Rules
    from airflow_provider_anaplat.users.sources import UserSource

__all__ = [
    "AnaplatCreateUsersOperator",
    "UnshownUsers",
]


class UnshownUsers(Sequence[Any]):
    """Users whose fields Airflow cannot show: before 3.3, it does so with the passwords if the list is long.

    :param users: the users, as the templates gave them
    """

    def __init__(self, users: Sequence[Any]) -> None:
        self._users = users

    def __getitem__(self, index: Any) -> Any:
        return self._users[index]

    def __len__(self) -> int:
        return len(self._users)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._users)

    def __repr__(self) -> str:
        return "1 user" if len(self) == 1 else f"{len(self)} users"

    def serialize(self) -> str:
        """Return what Airflow shows of them."""
        return repr(self)


class _NoList:
    """What was given in place of a list of users: a text or an object may hold their passwords all the same.

    :param given: what was given; only its type is kept
    """

    def __init__(self, given: Any) -> None:
        self.kind = type(given).__name__

    def __repr__(self) -> str:
        return f"a {self.kind}, which is no list"

    def serialize(self) -> str:
        """Return what Airflow shows of it."""
        return repr(self)


class AnaplatCreateUsersOperator(AnaplatOperator):
    """Create users in bulk, nobody twice (contract: operation 8).

    Give exactly one of ``users``, ``users_path`` and ``users_sql``. A list is stored in Airflow's database with
    its passwords, as part of the DAG or, if another task returns it, as an XCom; the other two keep passwords out
    of it. All users are checked before the first is sent.

    The users of a batch are recorded before it is sent, and again when the platform confirms it, by loginId and
    never with a password: in Airflow's task state store (3.3 and newer), or below ``progress_path``. A retry, or a
    cleared task of the same DAG run, continues where the last attempt stopped. Before Airflow 3.3 and without
    ``progress_path``, nothing is known of earlier attempts: a failure after the first batch is then not retried
    unless ``existing_users="skip"``; and if a worker died, a retry sends all users again, and the platform refuses
    those it knows.

    A batch whose answer was lost is in doubt. With ``existing_users="skip"``, the platform is asked which of its
    users exist; otherwise the task fails with their loginIds until ``in_doubt`` says what became of them.

    :param users: the users, as a list of dictionaries under the contract's field names (``loginId``, ``name``,
        ``password``, ``role``, ``email``, ``mobile``, ``enabled``, ``userGroupIds``,
        ``userDefinedProperties``) or theirs in snake_case; give a list or an XComArg, never JSON text, since
        Airflow hides passwords in a list alone (templated)
    :param users_path: local path, or the URL of an object, of a CSV (UTF-8, with a header), NDJSON or Parquet
        file, by its suffix. Columns are the contract's fields, in any case and with or without ``_``;
        ``userGroupIds`` is a list, or separated by ``;``; ``userDefinedProperties.<name>`` is one property. An
        empty cell is not sent (templated)
    :param users_sql: a query whose columns are those of ``users_path``; it is run twice, to check and to send
        (templated)
    :param sql_conn_id: id of the Airflow connection for ``users_sql``; any whose hook is a ``DbApiHook``
        (templated)
    :param user_property_type: sent as ``userPropertyType``; the contract leaves its values open (templated)
    :param batch_size: users a request creates at most
    :param existing_users: ``skip`` asks the platform which users exist, and leaves those out; this rests on the
        operation ``users/get``, which the contract does not describe. ``error`` leaves it to the platform to
        refuse them (templated)
    :param isolate_rejected: halve a rejected batch until the rejected users are known, and create the others. Use
        it only if the platform applies a batch whole or not at all, which the contract does not say
    :param on_rejected: with ``isolate_rejected``, ``fail`` in the end, or ``report`` the rejected users and
        succeed
    :param in_doubt: if the answer to a batch was lost: ``fail`` without a retry, and name its users; or
        ``resend``: Airflow's retries send it again, at the risk of users that exist twice or a batch that is
        refused because they exist. ``created`` and ``not_created`` say what became of the users in doubt: set
        them for one run only, or from ``params``, since they also apply to answers that are lost later (templated)
    :param progress_path: local path, or the URL of a folder in an object store, where the progress is kept in
        small files by DAG run and task, in place of Airflow's task state store; they stay there (templated)
    :param password_encoding: ``plain``, or ``base64``, which some deployments want
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns the numbers ``created`` (in all attempts of this DAG run), ``skipped``, ``rejected`` and ``batches``,
    and ``loginIds``, an object with the first 200 loginIds of each of the first three.

    Raises :class:`AirflowFailException`, which Airflow does not retry, if users do not pass the checks (it lists
    the first 200 problems, by index, line or row, without any password; nothing was sent), if users are rejected
    or in doubt, and if the platform reports another number than were sent; and :class:`AnaplatError` if a retry
    may help.

    How-to: :doc:`howto/provision-users`. Example::

        AnaplatCreateUsersOperator(task_id="users", users_path="/data/users.csv", existing_users="skip")
    """

    template_fields: Sequence[str] = (
        "users",
        "users_path",
        "users_sql",
        "sql_conn_id",
        "user_property_type",
        "existing_users",
        "in_doubt",
        "progress_path",
        "anaplat_conn_id",
    )
    more_words: ClassVar[Mapping[str, Sequence[str]]] = {"in_doubt": ("created", "not_created")}
    users: Sequence[Mapping[str, Any]] | _NoList | None
    template_fields_renderers = {"users_sql": "sql"}  # noqa: RUF012 - as BaseOperator declares it

    def __init__(
        self,
        *,
        users: Sequence[Mapping[str, Any]] | None = None,
        users_path: str | None = None,
        users_sql: str | None = None,
        sql_conn_id: str | None = None,
        user_property_type: int | None = None,
        batch_size: int = 200,
        existing_users: OnExisting = "error",
        isolate_rejected: bool = False,
        on_rejected: OnRejected = "fail",
        in_doubt: InDoubt = "fail",
        progress_path: str | None = None,
        password_encoding: PasswordEncoding = "plain",
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(anaplat_conn_id=anaplat_conn_id, **kwargs)
        self.users = users
        self.users_path = users_path
        self.users_sql = users_sql
        self.sql_conn_id = sql_conn_id
        self.user_property_type = user_property_type
        self.batch_size = batch_size
        self.existing_users = existing_users
        self.isolate_rejected = isolate_rejected
        self.on_rejected = on_rejected
        self.in_doubt = in_doubt
        self.progress_path = progress_path
        self.password_encoding = password_encoding

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        """Render, then keep the users from being shown; a mapped operator comes by here alone."""
        super()._do_render_template_fields(parent, *args, **kwargs)
        if parent is self and self.users is not None:
            self.users = UnshownUsers(self.users) if _is_list(self.users) else _NoList(self.users)

    def work(self, context: Context) -> dict[str, Any]:
        """Check all users, then create those that are not created yet."""
        from airflow_provider_anaplat.users.ledger import UserLedger
        from airflow_provider_anaplat.users.provision import Provisioning

        rules = self._rules()
        with closing(self.client()) as client:
            source = self._source()
            store = self._store(context)
            return Provisioning(client, UserLedger(store, client.base_url), rules).run(source)

    def _rules(self) -> Rules:
        from airflow_provider_anaplat.users.provision import Rules

        return Rules(
            batch_size=self.batch_size,
            user_property_type=self._property_type(),
            existing_users=self.existing_users,
            isolate_rejected=self.isolate_rejected,
            on_rejected=self.on_rejected,
            in_doubt=self.in_doubt,
            password_encoding=self.password_encoding,
        )

    def _property_type(self) -> int | None:
        """Return the number, which is a text if a template gave it."""
        given = self.user_property_type
        if given is None:
            return None
        try:
            if isinstance(given, int | str) and not isinstance(given, bool):
                return int(given)
        except ValueError:
            pass
        raise AirflowFailException(
            f"user_property_type is {given!r}; it must be a whole number. Nothing was sent."
        )

    def _source(self) -> UserSource:
        from airflow_provider_anaplat.users.sources import ListSource, QuerySource, file_source

        given = [name for name in ("users", "users_path", "users_sql") if getattr(self, name) is not None]
        if len(given) != 1:
            raise AirflowFailException(
                f"Give exactly one of users, users_path and users_sql; given: {', '.join(given) or 'none'}."
            )
        if self.users_path is not None:
            return file_source(path_of(self.users_path))
        if self.users_sql is not None:
            if not self.users_sql.strip():
                raise AirflowFailException("users_sql is empty; it must be a query. Nothing was sent.")
            if not self.sql_conn_id:
                raise AirflowFailException("users_sql needs sql_conn_id, the id of the database's connection.")
            return QuerySource(partial(query, self.sql_conn_id, self.users_sql))
        if not _is_list(self.users):
            other = self.users if isinstance(self.users, _NoList) else _NoList(self.users)
            raise AirflowFailException(
                f"users is a {other.kind}; it must be a list of dictionaries. A template renders "
                "to text unless the DAG has render_template_as_native_obj=True; give the list or task.output."
            )
        return ListSource(self.users)

    def _store(self, context: Context) -> StateStore | None:
        store = (
            task_state(context) if self.progress_path in (None, "") else folder_state(context, self.progress_path)
        )
        if store is None:
            self.log.warning(
                "Progress is not kept, since Airflow has no task state store before 3.3 and progress_path is not "
                "set: a retry after the death of this worker would send the users from the first on"
            )
        return store


def _is_list(users: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(users, Sequence) and not isinstance(users, str)
