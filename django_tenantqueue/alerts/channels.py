"""Sends a message: to a webhook, by e-mail, to the log. Errors hide the path of a webhook."""

from __future__ import annotations

import http.client
import logging
import time
from collections.abc import Callable
from urllib import request as urllib_request
from urllib.error import HTTPError

from django.core.mail import EmailMessage

from ..exceptions import DeliveryFailed
from ..models import AlertRule
from ..webhooks import signed_headers
from .messages import Message, json_of, lines_of, slack_of, title_of

logger = logging.getLogger("django_tenantqueue.alerts")

TIMEOUT_SECONDS = 10.0
"""How long a receiver may keep silent. Halved: slow ones get messages twice. Doubled: one that
hangs takes a thread for longer."""


def post(rule: AlertRule, message: Message) -> None:
    """Post a message to the webhook of a rule. Raises DeliveryFailed."""
    if not rule.webhook_url:
        return
    is_slack = rule.webhook_format == AlertRule.Format.SLACK
    body = (slack_of if is_slack else json_of)(message).encode()
    keys = [rule.signing_key] if rule.webhook_secret else []
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "django-tenantqueue",
        **signed_headers(message["id"], body, int(time.time()), keys),
    }
    # Knows http and https alone, and follows no redirect: the message would go to another place.
    opener = urllib_request.OpenerDirector()
    for handler in (
        urllib_request.ProxyHandler(),
        urllib_request.HTTPHandler(),
        urllib_request.HTTPSHandler(),
        urllib_request.HTTPErrorProcessor(),
        urllib_request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    asked = urllib_request.Request(rule.webhook_url, body, headers, method="POST")  # noqa: S310
    try:
        answer = opener.open(asked, timeout=TIMEOUT_SECONDS)
        if answer is None:
            raise DeliveryFailed(f"{rule.shown_url} is no address of a webhook")
        answer.close()
    except HTTPError as error:
        error.close()
        raise DeliveryFailed(f"{rule.shown_url} answered {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise DeliveryFailed(f"{rule.shown_url} cannot be reached: {reason}") from None


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
    """Write a message to the log: at ERROR if it tells of an open alert, else at INFO."""
    is_open = any(alert["state"] != "resolved" for alert in message["alerts"])
    text = f"{title_of(message)}\n{lines_of(message)}"
    logger.log(logging.ERROR if is_open else logging.INFO, "alert: %s", text)


CHANNELS: dict[str, Callable[[AlertRule, Message], None]] = {
    "webhook": post,
    "email": mail,
    "log": log,
}
"""What sends on each of AlertRule.channels."""
