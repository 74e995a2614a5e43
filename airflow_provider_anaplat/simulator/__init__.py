"""The embedded platform: a real HTTP server with the contract's nine operations, and the extensions.

For demos, and for the tests of this package and of your own DAGs; it needs the extra ``simulator``.

>>> from airflow_provider_anaplat.client import AnaplatClient
>>> from airflow_provider_anaplat.simulator import Simulator
>>> with Simulator() as platform:
...     AnaplatClient(platform.url, platform.token).list_datasets()
[]
"""

from airflow_provider_anaplat.simulator.server import Simulator
from airflow_provider_anaplat.simulator.tables import Table

__all__ = ["Simulator", "Table"]
