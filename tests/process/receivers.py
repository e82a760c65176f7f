"""Receivers of alerts: an HTTP server and an SMTP server, each in a thread."""

from __future__ import annotations

import email
import email.policy
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from standardwebhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class HttpReceiver:
    """Keeps the messages that it takes, each by its webhook-id; checks their signatures."""

    def __init__(self) -> None:
        self.status = 204
        self.requests: list[str] = []
        """The webhook-id of each request, refused ones included."""
        self.messages: dict[str, dict[str, Any]] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                Webhook(SECRET).verify(body, headers)  # raises: the sender gets no answer
                receiver.requests.append(headers["webhook-id"])
                if receiver.status < 300:
                    receiver.messages[headers["webhook-id"]] = json.loads(body)
                self.send_response(receiver.status)
                if receiver.status == 302:
                    self.send_header("Location", f"{receiver.url}elsewhere")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Print nothing."""

        self.handler = Handler
        self.port = 0
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/token/"

    def up(self) -> None:
        """Listen, at the same port as before."""
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), self.handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def told(self) -> list[tuple[str, str, str]]:
        """Return rule, state and object of all that was told, in the order of arrival."""
        return [
            (message["data"]["rule"], alert["state"], alert["object"])
            for message in self.messages.values()
            for alert in message["data"]["alerts"]
        ]


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()
    yield receiver
    receiver.down()


class Mailbox:
    """Keeps the e-mails that it gets."""

    def __init__(self) -> None:
        self.answer = "250 OK"
        """What it says to an e-mail. It keeps those that it takes."""
        self.mails: list[EmailMessage] = []
        self.refused = 0
        with socket.socket() as found:  # the controller connects to the port that it is told
            found.bind(("127.0.0.1", 0))
            self.port = int(found.getsockname()[1])
        self.up()

    async def handle_DATA(  # noqa: N802 - so the server calls it
        self, server: object, session: object, envelope: Any
    ) -> str:
        if self.answer.startswith("250"):
            self.mails.append(
                email.message_from_bytes(envelope.content, policy=email.policy.default)
            )
        else:
            self.refused += 1
        return self.answer

    def up(self) -> None:
        """Listen, at the same port as before."""
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()

    def down(self) -> None:
        self._controller.stop()

    @property
    def subjects(self) -> list[str]:
        return [mail["Subject"] for mail in self.mails]


@contextmanager
def smtp_receiver() -> Iterator[Mailbox]:
    """Yield a mailbox, whose server listens."""
    mailbox = Mailbox()
    yield mailbox
    mailbox.down()
