"""Signatures by the Standard Webhooks specification (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from ..exceptions import InvalidOption

PREFIX = "whsec_"


def webhook_headers(job_id: int, body: bytes, now: int, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of one attempt. The id is that of the job, so it stays over attempts.

    `now`: seconds since 1970. Without a secret there is no signature. Raises InvalidOption.
    """
    message_id = f"job_{job_id}"
    headers = {"webhook-id": message_id, "webhook-timestamp": str(now)}
    signed = f"{message_id}.{now}.".encode() + body
    if secrets:
        headers["webhook-signature"] = " ".join(_signature(key, signed) for key in secrets)
    return headers


def _signature(secret: str, signed: bytes) -> str:
    digest = hmac.digest(_key(secret), signed, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (AttributeError, TypeError, ValueError, binascii.Error):
        key = b""
    if not key:
        raise InvalidOption(  # without the secret: the message is kept with the job
            "HTTP_SECRETS gave something that is no secret: it must be base64 after 'whsec_'"
        )
    return key
