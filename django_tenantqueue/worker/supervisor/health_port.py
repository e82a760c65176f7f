"""The health port: answers probes over HTTP, without the database."""

from __future__ import annotations

import signal
import socket
import socketserver
import threading
import time
from http import HTTPStatus
from typing import Any

MAX_AGE = 30.0
"""A supervisor that has made no progress for this many seconds is not alive."""
ANSWER_SECONDS = 1.0
"""How long a client may take to send its request."""


class HealthPort:
    """Answers `GET /live` and `GET /ready` with 200 or 503, and a line that says why.

    It runs in a thread of the supervisor. Raises OSError if the port is in use.
    """

    def __init__(self, port: int) -> None:
        self._at = time.monotonic()
        self._reason: str | None = "it is starting"
        self._server = _Server(("", port), _Handler)
        self._server.health = self

    def start(self) -> None:
        """Start to answer. Signals are left to the calling thread."""
        thread = threading.Thread(
            target=self._server.serve_forever, name="tenantqueue-health", daemon=True
        )
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def tell(self, reason: str | None) -> None:
        """Note progress, and why the worker is not ready; None if it is."""
        self._reason = reason
        self.keep_alive()

    def keep_alive(self) -> None:
        """Note progress."""
        self._at = time.monotonic()

    def answer(self, path: str) -> tuple[HTTPStatus, str]:
        """Return the status and the line for a path."""
        path = path.partition("?")[0]
        if path not in ("/live", "/ready"):
            return HTTPStatus.NOT_FOUND, "see /live and /ready"
        age = time.monotonic() - self._at
        if age > MAX_AGE:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"no progress for {age:.0f} s"
        if path == "/ready" and self._reason is not None:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {self._reason}"
        return HTTPStatus.OK, "ok"

    def close_in_child(self) -> None:
        """Close the port in a forked child."""
        self._server.socket.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.TCPServer):
    """Answers one request after another, each within ANSWER_SECONDS.

    http.server would start a thread for each client, and look up the name of the machine.
    """

    allow_reuse_address = True
    request_queue_size = 64
    health: HealthPort

    def server_bind(self) -> None:
        """Take clients by IPv6 and by IPv4, if the machine has both."""
        if socket.has_dualstack_ipv6():
            self.socket.close()
            self.socket = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log clients that go away."""


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Read one piece, which a probe's request fits into, and answer it."""
        self.request.settimeout(ANSWER_SECONDS)
        words = self.request.recv(8192).split(b"\r\n", 1)[0].split()
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            status, line = HTTPStatus.BAD_REQUEST, "see /live and /ready"
        else:
            status, line = self.server.health.answer(words[1].decode("latin-1"))
        body = f"{line}\n".encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode()
        self.request.sendall(head if words[:1] == [b"HEAD"] else head + body)
