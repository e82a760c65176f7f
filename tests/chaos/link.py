"""A connection that outlives the server it leads to."""

from __future__ import annotations

import time
from typing import Any

import psycopg

PATIENCE_SECONDS = 120.0
"""A server that was stopped is there again long before."""
PAUSE_SECONDS = 0.05


class Link:
    """One connection in autocommit mode, opened again after it was lost. For one thread."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.name = name
        self._connection: psycopg.Connection[Any] | None = None

    def execute(self, query: str, params: object = None) -> list[Any]:
        """Run a statement and return its rows; raise psycopg.OperationalError when it is cut."""
        try:
            if self._connection is None:
                self._connection = psycopg.connect(
                    self.url, autocommit=True, application_name=self.name, connect_timeout=10
                )
            cursor = self._connection.execute(query, params)
            return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError:
            self.close()
            raise

    def insist(self, query: str, params: object = None) -> list[Any]:
        """Run a statement until it is known to have worked; it may then have run twice."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self.execute(query, params)
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """End the connection; the next statement opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
