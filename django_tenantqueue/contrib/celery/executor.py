"""Sends claims to Celery workers: one message for each, to one Celery task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from celery import current_app
from django.utils.module_loading import import_string

from ...exceptions import InvalidOption
from ...executors import SEND_SECONDS, Claim, RemoteExecutor
from ...settings import TEN_YEARS
from ...worker.config import KILL_SECONDS
from .run_claim import NAME

CONNECT_SECONDS = SEND_SECONDS / 6
"""Timeout of a connection to the broker: a few fit into the time of one sending."""
KNOWN = ("app", "queue", "window")


class CeleryExecutor(RemoteExecutor):
    """Runs jobs in the workers of a Celery app.

    `OPTIONS`: `app`, the dotted path of the app (default: Celery's current app); `queue`, the name
    of the Celery queue (default: "tenantqueue"); `window`, maximum of messages that no worker has
    taken (default: 200).
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        where = f"TENANTQUEUE['EXECUTORS'][{name!r}]['OPTIONS']"
        if unknown := [key for key in options if key not in KNOWN]:
            raise InvalidOption(f"{where} has {unknown[0]!r}: known are {', '.join(KNOWN)}")
        self.queue = options.get("queue", "tenantqueue")
        self.window = options.get("window", self.window)
        if not isinstance(self.queue, str) or not self.queue:
            raise InvalidOption(f"{where}['queue'] is {self.queue!r}: give the name of a queue")
        if (
            isinstance(self.window, bool)
            or not isinstance(self.window, int)
            or not 1 <= self.window <= 10_000
        ):
            raise InvalidOption(f"{where}['window'] is {self.window!r}: give 1 to 10000")
        path = options.get("app")
        try:
            self.app = current_app if path is None else import_string(path.replace(":", "."))
        except (ImportError, AttributeError) as error:
            raise InvalidOption(f"{where}['app'] is {path!r}: {error}") from None
        self._connection: Any = None
        self._producer: Any = None

    def _open(self) -> Any:
        if self._producer is None:
            # its messages may be minutes apart, and nothing would answer the broker's heartbeats
            self._connection = self.app.connection_for_write(
                connect_timeout=CONNECT_SECONDS, heartbeat=0
            )
            self._connection.ensure_connection(max_retries=1, interval_start=0.1)
            self._producer = self.app.amqp.Producer(self._connection, auto_declare=False)
        return self._producer

    def send(self, claims: Sequence[Claim]) -> None:
        """Send a message for each claim. A dead connection is opened again once.

        Raises the error of Celery or kombu when the broker cannot be reached.
        """
        left = list(claims)
        for is_last in (False, True):
            try:
                producer = self._open()
                while left:
                    limit = left[0].time_limit
                    limit = TEN_YEARS if limit is None else limit + 2 * KILL_SECONDS
                    self.app.tasks[NAME].apply_async(
                        (str(left[0]), self.name),
                        producer=producer,
                        queue=self.queue,
                        retry=False,
                        ignore_result=True,
                        # the job's own come first; without these the project's would hold
                        time_limit=limit,
                        soft_time_limit=limit,
                    )
                    del left[0]
                return
            except Exception:
                self.disconnect()
                if is_last:
                    raise

    def ping(self) -> None:
        """Connect to the broker."""
        self.disconnect()
        self._open()

    def disconnect(self) -> None:
        """Close the connection to the broker."""
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            with suppress(Exception):
                connection.release()
