"""A TCP proxy between workers and the server that can be cut in the ways in which networks fail."""

from __future__ import annotations

import os
import re
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit, urlunsplit

RESET = struct.pack("ii", 1, 0)
"""The value of SO_LINGER that makes close() send a reset."""


class How(Enum):
    """What becomes of a connection that is cut."""

    HALF_OPEN = "the server's side is lost, and the client's socket stays open"
    BLACK_HOLE = "nothing is passed on, and both sockets stay open"
    RESET = "both sides are reset"
    CLOSED = "both sides are closed"


class New(Enum):
    """What becomes of new connections meanwhile."""

    PASS = "they work"
    HOLD = "they are accepted and never answered"
    CLOSE = "they are accepted and closed"


@dataclass(eq=False)
class Link:
    """One connection of a client, and the one to the server behind it."""

    client: socket.socket
    server: socket.socket | None
    name: str = ""
    """The application's name, from the first packet."""
    is_held: bool = False
    sent: bytes = field(default=b"", repr=False)
    """The end of what has passed, to find a text that comes in parts."""


@dataclass
class Trap:
    """Cut when this text passes, in either direction."""

    text: bytes
    spring: Callable[[], None]
    is_lost: bool
    """The text itself does not get through."""


class Proxy:
    """Passes bytes on in a thread of its own. Names without TLS."""

    def __init__(self, database_url: str) -> None:
        server = urlsplit(database_url)
        self.address = (server.hostname, server.port or 5432)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        port = self.listener.getsockname()[1]
        place = f"{server.username}:{server.password}@127.0.0.1:{port}"
        self.url = urlunsplit(("postgres", place, server.path, "sslmode=disable", ""))
        self.new = New.PASS
        self.trap: Trap | None = None
        self.sprung_at = 0.0
        """When the trap has sprung (monotonic time)."""
        self.links: list[Link] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.listener, selectors.EVENT_READ, None)
        self._wake_read, self._wake_write = os.pipe()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._orders: list[Callable[[], None]] = []
        self._done = threading.Event()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    # called by tests

    def cut(self, how: How, new: New, which: str = "") -> None:
        """Cut the connections in whose name `which` is found; returns when that is done."""
        self._order(lambda: self._cut(how, new, which))

    def cut_at(
        self, text: bytes, how: How, new: New, which: str = "", *, is_lost: bool = False
    ) -> None:
        """Do this when `text` passes: it is the last that gets through, or the first that is lost.

        What is to be lost must come in one piece.
        """
        for link in self.links:
            link.sent = b""
        self.trap = Trap(text, lambda: self._cut(how, new, which), is_lost)

    def resume(self) -> None:
        """Let new connections work and what was held go on; end what has lost its server."""
        self._order(self._resume)

    def close(self) -> None:
        self._order(self._close)
        self._thread.join()

    def _order(self, order: Callable[[], None]) -> None:
        self._done.clear()
        self._orders.append(order)
        os.write(self._wake_write, b"w")
        assert self._done.wait(10.0)

    # the thread

    def _run(self) -> None:
        while not self._is_closing:
            for key, _ in self._selector.select():
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj == self._wake_read:
                    os.read(self._wake_read, 64)
                    while self._orders:
                        self._orders.pop(0)()
                    self._done.set()
                elif not self._is_closing:
                    self._pass_on(*key.data)

    def _accept(self) -> None:
        client, _ = self.listener.accept()
        if self.new is New.CLOSE:
            client.close()
            return
        link = Link(client, None, is_held=self.new is New.HOLD)
        self.links.append(link)
        if not link.is_held:
            self._open(link)

    def _open(self, link: Link) -> None:
        link.server = socket.create_connection(self.address)
        self._watch(link)

    def _watch(self, link: Link) -> None:
        assert link.server is not None
        self._selector.register(link.client, selectors.EVENT_READ, (link, link.client, link.server))
        self._selector.register(link.server, selectors.EVENT_READ, (link, link.server, link.client))

    def _forget(self, link: Link) -> None:
        for end in (link.client, link.server):
            if end is not None:
                with suppress(KeyError, ValueError):
                    self._selector.unregister(end)

    def _pass_on(self, link: Link, source: socket.socket, sink: socket.socket) -> None:
        if link.is_held or link not in self.links:
            return  # cut in this very round
        try:
            data = source.recv(65536)
            if not data:
                raise ConnectionError
            if source is link.client and not link.name:
                found = re.search(rb"application_name\0([^\0]*)\0", data)
                link.name = found[1].decode() if found else "?"
            link.sent = (link.sent + data)[-200_000:]
            is_last = self.trap is not None and self.trap.text in link.sent
            if self.trap is None or not (is_last and self.trap.is_lost):
                sink.sendall(data)
        except OSError:
            self._end(link)
            return
        if self.trap is not None and is_last:
            trap, self.trap, self.sprung_at = self.trap, None, time.monotonic()
            trap.spring()

    def _cut(self, how: How, new: New, which: str) -> None:
        self.new = new
        for link in list(self.links):
            if which not in link.name:
                continue
            if how is How.RESET:
                for end in (link.client, link.server):
                    if end is not None:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self._end(link)
            elif how is How.CLOSED:
                self._end(link)
            else:
                self._forget(link)
                link.is_held = True
                if how is How.HALF_OPEN and link.server is not None:
                    link.server.close()
                    link.server = None

    def _resume(self) -> None:
        self.new = New.PASS
        for link in [link for link in self.links if link.is_held]:
            if link.server is None:
                self._end(link)
            else:
                link.is_held = False
                self._watch(link)

    def _end(self, link: Link) -> None:
        self._forget(link)
        self.links.remove(link)
        for end in (link.client, link.server):
            if end is not None:
                end.close()

    def _close(self) -> None:
        self._is_closing = True
        for link in list(self.links):
            self._end(link)
        self.listener.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
