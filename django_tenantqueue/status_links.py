"""Tokens of links to the statuses of jobs: signed, for every holder, one user or one session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.core.signing import BadSignature, TimestampSigner, b62_decode

from .conf import get_settings

_SALT = "django_tenantqueue.status"
USER, SESSION = "u", "s"
"""What follows the id of the job in a token that one user, or one session, can open."""

Holder = Callable[[str], str | None]
"""Returns who asks: the user's or the session's key; None: there is none."""


class Link(NamedTuple):
    """What a token says. `user`: the one who alone can open it, else ""."""

    job_id: int
    made_at: datetime
    user: str


def sign_job_id(job_id: int, bound: str = "", key: str = "") -> str:
    """Return a token that names a job and cannot be made without SECRET_KEY.

    `bound`: USER or SESSION. Then only the holder of `key` can open it, which is part of the
    signature and not of the token.
    """
    return _signer(bound, key).sign(f"{job_id}{bound}")


def read_link(token: str, who: Holder = lambda bound: None) -> Link | None:
    """Return what a token says; None: it is forged, too old (STATUS_MAX_AGE), or for another one.

    `who` is called for tokens that are bound alone.
    """
    name = token.partition(":")[0]
    bound = name[-1:] if name[-1:] in (USER, SESSION) else ""
    key = who(bound) if bound else ""
    if key is None:
        return None
    most = timedelta(seconds=get_settings().status_max_age)
    try:
        text = _signer(bound, key).unsign(token, max_age=most)
    except BadSignature:
        return None
    made_at = datetime.fromtimestamp(b62_decode(token.split(":")[-2]), UTC)
    return Link(int(text.removesuffix(bound)), made_at, key if bound == USER else "")


def read_job_token(token: str) -> int | None:
    """Return the job id of a token that is not bound; None when it is forged or too old."""
    link = read_link(token)
    return None if link is None else link.job_id


def _signer(bound: str, key: str) -> TimestampSigner:
    return TimestampSigner(salt=f"{_SALT}.{bound}.{key}" if bound else _SALT)
