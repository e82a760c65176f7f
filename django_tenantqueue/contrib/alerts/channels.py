"""Sends a message: to a webhook, by e-mail, to the log. Errors hide the path of the webhook."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from django.core.mail import EmailMessage

from ...exceptions import Unsupported
from ...webhook_signatures import signed_headers
from ..http.addresses import Hosts, hosts_of
from ..http.answer import Answer
from ..http.exceptions import HttpAddressRefused, HttpJobFailed, HttpJobRejected
from .exceptions import DeliveryFailed
from .messages import Message, json_of, lines_of, slack_of, title_of
from .models import AlertRule

logger = logging.getLogger("django_tenantqueue.alerts")

TIMEOUT_SECONDS = 10.0
"""Timeout of a request."""


def post(rule: AlertRule, message: Message) -> None:
    """Post a message to the webhook of a rule, as HTTP jobs do. Raises DeliveryFailed."""
    if not rule.webhook_url:
        return
    is_slack = rule.webhook_format == AlertRule.Format.SLACK
    body = (slack_of if is_slack else json_of)(message).encode()
    keys = [rule.signing_key] if rule.webhook_secret else []
    headers = signed_headers(message["id"], body, int(time.time()), keys)
    try:
        hosts = hosts_of(rule.tenant or "")
        answer = asyncio.run(_send(rule.webhook_url, body, headers, hosts))
    except HttpAddressRefused as error:
        raise DeliveryFailed(f"{rule.shown_url} may not be called: {error}") from None
    except HttpJobRejected:  # whose message has the URL
        raise DeliveryFailed(f"{rule.shown_url} is not a valid webhook URL") from None
    except HttpJobFailed as error:
        reason = str(error).partition(": ")[2]  # before it is the URL
        raise DeliveryFailed(f"{rule.shown_url} cannot be reached: {reason}") from None
    if not 200 <= answer.status < 300:
        raise DeliveryFailed(f"{rule.shown_url} answered {answer.status}")


async def _send(url: str, body: bytes, headers: Mapping[str, str], hosts: Hosts) -> Answer:
    try:
        from ..http.client import get_client
    except ImportError as error:
        raise Unsupported(
            f"webhooks of alerts need a package that is not installed ({error.name}): "
            "pip install 'django-tenantqueue[http]'"
        ) from None
    client = await get_client()
    return await client.post(url, body, headers, hosts, TIMEOUT_SECONDS)


def mail(rule: AlertRule, message: Message) -> None:
    """Send a message to the addresses of a rule, as Django's settings say."""
    if not rule.addresses:
        return
    EmailMessage(
        subject=title_of(message),
        body=lines_of(message) + "\n",
        to=rule.addresses,
        headers={"Message-ID": f"<{message['id']}@django-tenantqueue>"},
    ).send()


def log(rule: AlertRule, message: Message) -> None:
    """Log a message: at ERROR if one of its alerts is open, else at INFO."""
    is_open = any(alert["state"] != "resolved" for alert in message["alerts"])
    text = f"{title_of(message)}\n{lines_of(message)}"
    logger.log(logging.ERROR if is_open else logging.INFO, "alert: %s", text)


CHANNELS: dict[str, Callable[[AlertRule, Message], None]] = {
    "webhook": post,
    "email": mail,
    "log": log,
}
"""How to send on each of AlertRule.channels."""
