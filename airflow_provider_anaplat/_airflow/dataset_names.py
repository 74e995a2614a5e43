"""What takes a dataset by its id or by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.client.names import check_one_given
from airflow_provider_anaplat.errors import AnaplatRequestError

if TYPE_CHECKING:
    from airflow_provider_anaplat.client import AnaplatClient


class NamesDataset:
    """An operator or a sensor that names one dataset, as ``ds_id`` or as ``dataset``."""

    ds_id: str | None
    dataset: str | None

    def check_dataset(self) -> None:
        """See that one of the two is given; templates are rendered by then.

        :raises AirflowFailException: both are, or none, which a retry would not mend
        """
        try:
            check_one_given(self.ds_id, self.dataset)
        except AnaplatRequestError as error:
            raise AirflowFailException(str(error)) from error

    def dataset_id(self, client: AnaplatClient) -> str:
        """Return the dataset's id, which takes one request for the dataset list if its name was given.

        :raises AnaplatNotFoundError: no dataset has the name
        :raises AnaplatDatasetExistsError: several have
        """
        return self.ds_id or client.find_dataset(self.dataset or "").ds_id
