"""The health port: answers probes over HTTP, without the database."""

from __future__ import annotations

import signal
import socketserver
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

MAX_AGE = 30.0
"""A supervisor that has made no progress for this many seconds is not alive."""


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


class _Server(socketserver.ThreadingTCPServer):
    """http.server's own would look up the name of the machine, which may take seconds."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    health: HealthPort

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log clients that go away."""


class _Handler(BaseHTTPRequestHandler):
    timeout = 5.0
    server: _Server

    def do_GET(self) -> None:
        status, line = self.server.health.answer(self.path)
        body = f"{line}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Log no requests."""
