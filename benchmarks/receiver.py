"""A small HTTP server on 127.0.0.1 that receives what HTTP jobs send.

As a process (`python -m benchmarks.receiver LATENCY`) it prints its port, and answers a GET with
what it has counted. Tests run it in a thread.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Received:
    """A request. The names of its headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def webhook_id(self) -> str:
        """What names the job."""
        return self.headers.get("webhook-id", "")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, `after` so many seconds; None: never. `cut`: the connection ends half way."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float | None = 0.0
    cut: bool = False

    def encode(self) -> bytes:
        """Return the bytes that are sent."""
        more = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        length = len(self.body) + (10 if self.cut else 0)
        head = f"HTTP/1.1 {self.status} Said\r\n{more}Content-Length: {length}\r\n\r\n"
        return head.encode() + self.body


class Receiver:
    """Answers each request as `answer` says, and counts."""

    def __init__(self, answer: Callable[[Received], Reply]) -> None:
        self.answer = answer
        self.requests = 0
        self.connections: set[asyncio.Transport] = set()
        self.connections_made = 0
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        """Path -> the most requests that were under way at once."""
        self.ids: Counter[str] = Counter()
        self.port = 0
        self._loop = asyncio.new_event_loop()

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self), "127.0.0.1", 0, backlog=1000
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def counts(self) -> dict[str, Any]:
        """Return what was counted."""
        return {"requests": self.requests, "jobs": len(self.ids), "most": dict(self.most)}

    def __enter__(self) -> Receiver:
        self._loop.run_until_complete(self.start())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._server.close()
        for transport in self.connections:
            transport.abort()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._receiver.connections.add(transport)
        self._receiver.connections_made += 1

    def connection_lost(self, error: Exception | None) -> None:
        self._receiver.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"\x16"):  # a client that wants TLS
            self._transport.write(b"no TLS here")
            self._transport.close()
            return
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        whole = end + 4 + int(headers.get("content-length", 0))
        if len(self._buffer) < whole:
            return
        body = bytes(self._buffer[end + 4 : whole])
        del self._buffer[:whole]
        method, path, _ = first.split(" ", 2)
        self._receive(Received(method, path, headers, body))

    def _receive(self, received: Received) -> None:
        receiver, path = self._receiver, received.path
        if received.method == "GET":
            counts = json.dumps(receiver.counts()).encode()
            self._transport.write(Reply(body=counts).encode())
            return
        receiver.requests += 1
        receiver.ids[received.webhook_id] += 1
        receiver.now[path] += 1
        receiver.most[path] = max(receiver.most[path], receiver.now[path])
        reply = receiver.answer(received)
        if reply.after is not None:
            asyncio.get_running_loop().call_later(reply.after, self._reply, path, reply)

    def _reply(self, path: str, reply: Reply) -> None:
        self._receiver.now[path] -= 1
        self._transport.write(reply.encode())
        if reply.cut:
            self._transport.close()


async def _serve(seconds: float) -> None:
    reply = Reply(after=seconds)
    receiver = Receiver(lambda received: reply)
    await receiver.start()
    told_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_stop.set)
    print(receiver.port, flush=True)
    await told_to_stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
