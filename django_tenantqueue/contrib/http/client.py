"""Sends requests: connections, circuit breaker and tenant settings of one event loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.resolver import ThreadedResolver
from asgiref.sync import sync_to_async
from django.utils.module_loading import import_string
from yarl import URL

from ... import __version__
from ...batch_sizes import REMEMBERED, REMEMBERED_SECONDS
from ...conf import get_settings, settings_of
from .addresses import Hosts, Networks, check_address, read_address
from .answer import Answer
from .breaker import Breaker
from .exceptions import HttpJobFailed, HttpJobRejected
from .request import shown
from .settings import HttpSettings

KEPT_SECONDS = REMEMBERED_SECONDS * 60
"""How long the values of SECRETS and TENANT_HOSTS for a tenant are cached."""
HEADERS = {
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": f"django-tenantqueue/{__version__}",
}


class CheckedResolver(ThreadedResolver):
    """Resolves names. Connections are made only to the addresses that were checked here."""

    def __init__(self, networks: Networks) -> None:
        super().__init__()
        self._networks = networks

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[Any]:
        """Return all addresses. Raises HttpAddressRefused if one of them is not allowed."""
        found = await super().resolve(host, port, family)
        for entry in found:
            check_address(self._networks, read_address(entry["host"]), host)
        return found


class Client:
    """One for each event loop."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self._sessions: dict[Networks, aiohttp.ClientSession] = {}
        self._said: dict[tuple[str, str], tuple[float, asyncio.Future[Any]]] = {}

    def session(self, networks: Networks) -> aiohttp.ClientSession:
        """Return the connections of jobs that may also call these networks."""
        found = self._sessions.get(networks)
        if found is None:
            connector = aiohttp.TCPConnector(
                limit=0, resolver=CheckedResolver(networks), keepalive_timeout=5.0
            )
            found = self._sessions[networks] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers=HEADERS,
            )
        return found

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()

    async def ask(self, path: str | None, tenant: str) -> Sequence[str] | None:
        """Return the value of a setting's callable for a tenant, at most a minute old.

        None: there is no callable, or it returns None.
        """
        if path is None:
            return None
        now = time.monotonic()
        until, said = self._said.get((path, tenant), (0.0, None))
        if said is None or until < now:
            if len(self._said) >= REMEMBERED:
                self._said.clear()
            said = asyncio.ensure_future(sync_to_async(import_string(path))(tenant))
            self._said[path, tenant] = now + KEPT_SECONDS, said
        try:
            answer: Sequence[str] | None = await asyncio.shield(said)
            return answer
        except Exception:
            self._said.pop((path, tenant), None)
            raise

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], hosts: Hosts, seconds: float
    ) -> Answer:
        """POST a body; follow at most MAX_REDIRECTS redirects, each of them checked.

        Raises HttpJobFailed without a complete answer, HttpAddressRefused, HttpJobRejected.
        """
        settings = settings_of(HttpSettings)
        timeout = aiohttp.ClientTimeout(total=seconds, connect=settings.connect_timeout)
        session = self.session(hosts.networks)
        end = time.monotonic() + seconds
        target, left = _joined(URL(), url), settings.max_redirects
        while True:
            hosts.check(target.raw_host or "")
            answer = await self._send(session, target, body, headers, timeout)
            location = answer.headers.get("Location")
            if answer.status not in (307, 308) or not location or not left:
                return answer
            left -= 1
            before, target = target, _joined(target, location)
            if target.origin() != before.origin():
                headers = {n: v for n, v in headers.items() if n.startswith("webhook-")}
            timeout = aiohttp.ClientTimeout(
                total=max(0.001, end - time.monotonic()), connect=timeout.connect
            )

    async def _send(
        self,
        session: aiohttp.ClientSession,
        target: URL,
        body: bytes,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> Answer:
        where = shown(str(target))
        try:
            async with session.post(
                target, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                return await _read(response)
        except aiohttp.ConnectionTimeoutError:
            raise HttpJobFailed(
                f"{where}: no connection within {min(timeout.connect or 0, timeout.total or 0):g} s"
            ) from None
        except TimeoutError:
            raise HttpJobFailed(f"{where}: no answer within {timeout.total:.3g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise HttpJobFailed(f"{where}: {_explained(error)}") from None


async def _read(response: aiohttp.ClientResponse) -> Answer:
    own, of_results = settings_of(HttpSettings).max_body_bytes, get_settings().max_result_bytes
    most = min(own, of_results // 8)  # n bytes may take 8 n as JSON
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            response.close()  # the rest is not wanted, so the connection cannot be used again
            break
    return Answer(response.status, response.headers, bytes(body[:most]), len(body) > most)


def _explained(error: Exception) -> str:
    """Return what went wrong, without the URL, which the library's messages show."""
    if isinstance(error, aiohttp.ClientConnectorDNSError | UnicodeError):  # of a name like "a..b"
        return "the name of its host cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        return f"its certificate is not valid: {getattr(cause, 'verify_message', cause)}"
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed: {getattr(error, 'os_error', error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection: {error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ClientResponseError):
        return "the answer is not valid HTTP"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | OSError):
        return "the connection was cut before the whole answer came"
    return f"the request failed ({type(error).__name__})"


def _joined(base: URL, location: str) -> URL:
    """Return a URL, or the one that a redirect of `base` leads to. Raises HttpJobRejected."""
    try:
        target = base.join(URL(location))
        # it is read no earlier than here, and may be malformed
        is_one = target.scheme in ("http", "https") and target.raw_host and not target.raw_user
    except ValueError:
        is_one = False
    if not is_one:
        whose = f"the redirect of {shown(str(base))}" if base.raw_host else "the url"
        raise HttpJobRejected(
            f"{whose} is not valid: it needs https:// or http:// and a valid host"
        )
    return target


_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[Client], Client]] = (
    WeakKeyDictionary()
)


async def get_client() -> Client:
    """Return the client of this event loop.

    An asynchronous generator holds it. The worker and `asyncio.run()` close those at their end.
    """
    loop = asyncio.get_running_loop()
    found = _clients.get(loop)
    if found is None:
        generator = _kept(loop)
        found = _clients[loop] = generator, await anext(generator)
    return found[1]


async def _kept(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[Client]:
    client = Client()
    try:
        yield client
    finally:
        _clients.pop(loop, None)
        await client.close()
