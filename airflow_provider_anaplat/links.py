"""Links from a task to what it works on, in the platform's web interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_anaplat._airflow.releases import BaseOperatorLink, XCom

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

    from airflow_provider_anaplat._airflow.releases import BaseOperator, Context

__all__ = [
    "AnaplatDatasetLink",
    "AnaplatLink",
    "AnaplatPageLink",
    "link_dataset",
    "link_page",
]

# The directory of datasets that stand in none.
_ROOT = "root"


class AnaplatLink(BaseOperatorLink):
    """A link that a task has noted while it ran, on itself and in an XCom.

    :cvar template: the connection's extra that holds the address's template
    """

    template: ClassVar[str]

    @property
    def xcom_key(self) -> str:
        """Return the key of the XCom that holds the address."""
        return f"anaplat_{self.template}"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address; "" if the task has noted none.

        Airflow 3 asks the worker, when the task has ended; Airflow 2 asks the webserver, where the operator holds
        no more than its DAG file says.
        """
        noted = getattr(operator, "anaplat_links", None) or {}
        return noted.get(self.xcom_key) or XCom.get_value(key=self.xcom_key, ti_key=ti_key) or ""

    def note(self, operator: Any, context: Context, ids: Mapping[str, str | None]) -> None:
        """Note the address for this task. What goes wrong is logged: no task fails for its link.

        :param operator: the operator or sensor, which has ``anaplat_conn_id``
        :param context: the task's context
        :param ids: what stands for the names in braces
        """
        from airflow_provider_anaplat.hooks.anaplat import AnaplatHook

        known = {name: value for name, value in ids.items() if value}
        try:
            url = AnaplatHook(operator.anaplat_conn_id).web_address(self.template, **known)
            operator.anaplat_links = {**getattr(operator, "anaplat_links", {}), self.xcom_key: url}
            if (ti := context.get("ti")) is not None:
                ti.xcom_push(key=self.xcom_key, value=url)
        except Exception as error:  # noqa: BLE001 - of Airflow's database too: the dataset may just be created
            operator.log.warning("The task has no link %r: %s", self.name, error)


class AnaplatDatasetLink(AnaplatLink):
    """Link to a dataset (an extension: the contract names no web address)."""

    name = "Dataset"
    template = "dataset_url"


class AnaplatPageLink(AnaplatLink):
    """Link to a page (an extension: the contract names no web address)."""

    name = "Page"
    template = "page_url"


def link_dataset(operator: Any, context: Context, ds_id: str, dir_id: str | None = None) -> None:
    """Note the link to a dataset.

    :param operator: the operator or sensor
    :param context: the task's context
    :param ds_id: id of the dataset
    :param dir_id: id of its directory; by default, the root
    """
    AnaplatDatasetLink().note(operator, context, {"dsId": ds_id, "dirId": dir_id or _ROOT})


def link_page(operator: Any, context: Context, pg_id: str) -> None:
    """Note the link to a page.

    :param operator: the operator or sensor
    :param context: the task's context
    :param pg_id: id of the page
    """
    AnaplatPageLink().note(operator, context, {"pgId": pg_id})
