"""Signatures by the Standard Webhooks specification (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable

SECRET_PREFIX = "whsec_"  # noqa: S105 - the beginning of a secret


def read_secret(secret: str) -> bytes:
    """Return the key of a secret: "whsec_" and Base64, or Base64 alone. Raises ValueError."""
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)


def signed_headers(message_id: str, body: bytes, now: int, keys: Iterable[bytes]) -> dict[str, str]:
    """Return the headers of one attempt to deliver a message, whose id stays over attempts.

    `now`: seconds since 1970. Each key adds a signature. Without keys there is none.
    """
    headers = {"webhook-id": message_id, "webhook-timestamp": str(now)}
    signed = f"{message_id}.{now}.".encode() + body
    digests = [hmac.digest(key, signed, hashlib.sha256) for key in keys]
    if digests:
        signatures = [f"v1,{base64.b64encode(digest).decode()}" for digest in digests]
        headers["webhook-signature"] = " ".join(signatures)
    return headers
