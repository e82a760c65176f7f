"""Tells systemd when the worker is ready, that it makes progress, and when it stops.

See sd_notify(3): a message is one datagram to the socket that NOTIFY_SOCKET names.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from math import inf

logger = logging.getLogger("django_tenantqueue")


class SystemdNotifier:
    """Sends news for `Type=notify` and `WatchdogSec=`; does nothing without NOTIFY_SOCKET.

    Takes systemd's variables out of the environment, so that children and jobs do not have them. A
    message that cannot be sent is sent again with the next news, and never raises.
    """

    def __init__(self) -> None:
        take = os.environ.pop
        self._address = take("NOTIFY_SOCKET", "")
        microseconds, pid = take("WATCHDOG_USEC", ""), take("WATCHDOG_PID", "")
        is_watched = microseconds.isdecimal() and pid in ("", str(os.getpid()))
        is_watched = is_watched and int(microseconds) > 0
        self._interval = int(microseconds) / 2_000_000 if is_watched else inf
        self._alive_at = time.monotonic() + self._interval if is_watched else inf
        self._is_ready = self._is_stopping = self._has_failed = False
        self._status = ""

    @property
    def seconds_to_next(self) -> float:
        """Return the seconds until the next sign of life is due; infinite without a watchdog."""
        return self._alive_at - time.monotonic() if self._address else inf

    def tell(self, reason: str | None, *, is_stopping: bool) -> None:
        """Send what is new. `reason`: why the worker is not ready, None if it is."""
        if not self._address:
            return
        is_ready = self._is_ready or reason is None
        status = "ready" if reason is None else f"not ready: {reason}"
        news = []
        if is_ready > self._is_ready:
            news.append("READY=1")
        if is_stopping > self._is_stopping:
            news.append("STOPPING=1")
        if status != self._status:
            news.append(f"STATUS={status}")
        if news and self._send(news):
            self._is_ready, self._is_stopping, self._status = is_ready, is_stopping, status
        self.keep_alive()

    def keep_alive(self) -> None:
        """Send a sign of life if one is due: twice in the time that the watchdog allows."""
        if self.seconds_to_next <= 0.0:
            self._alive_at = time.monotonic() + self._interval
            self._send(["WATCHDOG=1"])

    def _send(self, lines: list[str]) -> bool:
        # a socket for each message: children would inherit one that stays open
        address = self._address
        if address.startswith("@"):
            address = f"\0{address[1:]}"
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), address)
        except (OSError, ValueError) as error:
            if not self._has_failed:
                logger.warning("notifying systemd failed: %s", error)
            self._has_failed = True
            return False
        self._has_failed = False
        return True
