"""OPTIONS of DATABASES, as the process that forks needs them and as its children do."""

from __future__ import annotations

from typing import Any

from django.db import connections

from .lease import KEEPALIVE

PATIENT_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25000,
}
"""Of a child's connections to the jobs' database, where the project says nothing else. They are
given up 25 s after the server has vanished; by the kernel's defaults it takes a quarter of an hour
and more."""


class DatabaseOptions:
    """Changes them for the supervisor, and for each child once it is forked.

    The supervisor has no pool: a child would share its sockets with the supervisor and with other
    children, and would lack its threads. Its connection notices a vanished server as soon as the
    lease does: while it waits there, nobody kills children whose locks are lost.
    """

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._before: dict[str, dict[str, Any]] = {}

    def change_for_supervisor(self) -> None:
        """Close the pools, let connections come from none, and let the lease's times hold."""
        if self._before:
            return
        for alias in connections:
            options = connections.settings[alias]["OPTIONS"]
            close_pool = options.get("pool") and getattr(connections[alias], "close_pool", None)
            if close_pool:
                connections[alias].close()
                close_pool()
                self._before[alias] = dict(options)
                del options["pool"]
        options = connections.settings[self._alias]["OPTIONS"]
        self._before.setdefault(self._alias, dict(options))
        options.update(KEEPALIVE)

    def change_for_child(self) -> None:
        """Let the project's own hold again; pools are made when they are first needed."""
        for alias, before in self._before.items():
            options = connections.settings[alias]["OPTIONS"]
            options.clear()
            options.update(before)
        self._before.clear()
        for name, value in PATIENT_KEEPALIVE.items():
            connections.settings[self._alias]["OPTIONS"].setdefault(name, value)
