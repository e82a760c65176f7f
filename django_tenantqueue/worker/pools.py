"""Django's own connection pools (OPTIONS["pool"]), which a fork must not copy."""

from __future__ import annotations

from typing import Any

from django.db import connections


class Pools:
    """Keeps the process that forks without pools; each child has its own.

    A child that inherited one would share its sockets with the supervisor and with other children,
    and would lack its threads.
    """

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}
        """Alias -> its OPTIONS["pool"]."""

    def take_out(self) -> None:
        """Close the pools; connections of this process come from none until put_back()."""
        for alias in connections:
            options = connections.settings[alias]["OPTIONS"]
            close_pool = options.get("pool") and getattr(connections[alias], "close_pool", None)
            if close_pool:
                connections[alias].close()
                close_pool()
                self._options[alias] = options.pop("pool")

    def put_back(self) -> None:
        """Let connections come from pools again, which are made when they are first needed."""
        for alias, option in self._options.items():
            connections.settings[alias]["OPTIONS"]["pool"] = option
        self._options.clear()
