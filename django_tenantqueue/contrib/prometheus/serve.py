"""The metrics over HTTP: a page of the project, and the port of a worker."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import psycopg
from django.db import DatabaseError, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ...conf import get_settings, settings_of
from .collector import registry
from .settings import OPEN, PrometheusSettings

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

logger = logging.getLogger("django_tenantqueue")

TEXT = "text/plain; charset=utf-8"
PATHS = ("/", "/metrics", "/metrics/")
WAIT_SECONDS = 10.0
"""Longest wait of a scrape for another one, or for the server: the timeout of Prometheus."""
WAY_IN = f"set TENANTQUEUE['METRICS']['ACCESS'] to a token, or to {OPEN!r}"


def refused(authorization: str) -> tuple[HTTPStatus, str, dict[str, str]] | None:
    """Return the status, text and headers for a scrape that ACCESS rejects; None: it is allowed.

    404 if metrics are off, 401 without a token, 403 with a wrong one. Compares in constant time.
    """
    wanted = settings_of(PrometheusSettings).access
    if wanted is None:
        return HTTPStatus.NOT_FOUND, f"metrics are off: {WAY_IN}\n", {}
    if wanted == OPEN:
        return None
    if not authorization:
        return HTTPStatus.UNAUTHORIZED, "no token\n", {"WWW-Authenticate": "Bearer"}
    scheme, _, token = authorization.partition(" ")
    if constant_time_compare(token.strip(), wanted) and scheme.lower() == "bearer":
        return None
    return HTTPStatus.FORBIDDEN, "wrong token\n", {}


def render(found: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return the body for a scraper that accepts these types, and its content type."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    return encode(found), content_type


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer a scrape of Prometheus. See refused()."""
    if found := refused(request.headers.get("Authorization", "")):
        status, text, headers = found
        return HttpResponse(text, status=status, headers=headers, content_type=TEXT)
    body, kind = render(registry(get_settings().database), request.headers.get("Accept", ""))
    return HttpResponse(body, content_type=kind)


class QuietHandler(WSGIRequestHandler):
    """Logs no requests."""

    timeout = WAIT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class MetricsPort:
    """Answers scrapes of a worker in its own threads; forked children close it.

    One scrape at a time has a database connection, which is closed afterwards. Raises OSError if
    the port is in use.
    """

    def __init__(self, using: str, port: int) -> None:
        from prometheus_client.exposition import ThreadingWSGIServer

        self._using = using
        self._registry = registry(using)
        self._one_at_a_time = threading.Lock()
        self._server: WSGIServer = make_server(
            "", port, self.answer, ThreadingWSGIServer, handler_class=QuietHandler
        )

    @property
    def port(self) -> int:
        """The port; a free one was chosen for 0."""
        return int(self._server.server_port)

    def start(self) -> None:
        """Start to answer. Signals are left to the calling thread."""
        thread = threading.Thread(
            target=self._server.serve_forever, name="tenantqueue-metrics", daemon=True
        )
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close_in_child(self) -> None:
        """Close the port in a forked child."""
        self._server.socket.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(
        self, environ: dict[str, Any], start_response: Callable[..., object]
    ) -> Iterable[bytes]:
        """Answer one request, as a WSGI application."""
        status, headers, body = self._answer(environ)
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [body] if environ.get("REQUEST_METHOD") == "GET" else [b""]

    def _answer(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        text = [("Content-Type", TEXT)]
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return "405 Method Not Allowed", [*text, ("Allow", "GET, HEAD")], b"GET only\n"
        if environ.get("PATH_INFO") not in PATHS:
            return "404 Not Found", text, b"see /metrics\n"
        if found := refused(environ.get("HTTP_AUTHORIZATION", "")):
            status, content, headers = found
            return f"{status} {status.phrase}", [*text, *headers.items()], content.encode()
        if not self._one_at_a_time.acquire(timeout=WAIT_SECONDS):
            return "503 Service Unavailable", text, b"another scrape takes too long\n"
        try:
            body, kind = self._read(environ.get("HTTP_ACCEPT", ""))
        except (psycopg.Error, DatabaseError) as error:
            logger.warning("reading the metrics failed, answering 503: %s", error)
            return "503 Service Unavailable", text, b"the database cannot be read\n"
        finally:
            with suppress(Exception):
                connections.close_all()
            self._one_at_a_time.release()
        return "200 OK", [("Content-Type", kind)], body

    def _read(self, accept: str) -> tuple[bytes, str]:
        limit = f"{WAIT_SECONDS:.0f}s"
        # for the transaction alone: a pooler gives the connection to others
        with transaction.atomic(using=self._using), connections[self._using].cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])
            return render(self._registry, accept)
