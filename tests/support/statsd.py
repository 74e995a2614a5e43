"""What hears the metrics that Airflow sends by StatsD."""

from __future__ import annotations

import socket


class StatsD:
    """Hears what is sent."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0)
        self.heard: dict[str, list[str]] = {}

    def environment(self, on: bool = True) -> dict[str, str]:
        return {
            "AIRFLOW__METRICS__STATSD_ON": str(on),
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(self.socket.getsockname()[1]),
        }

    def values(self, name: str) -> list[str]:
        while True:
            try:
                text = self.socket.recv(65536).decode()
            except BlockingIOError:
                break
            for line in text.splitlines():
                key, _, value = line.partition(":")
                self.heard.setdefault(key, []).append(value)
        return self.heard.get(f"airflow.anaplat.{name}", [])
