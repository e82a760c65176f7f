"""Tokens of links to the statuses of jobs: signed, for anyone, a user or a browser session."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

from django.core.signing import BadSignature, TimestampSigner

from .conf import get_settings

_SALT = "django_tenantqueue.status"
USER, BROWSER_SESSION = "u", "s"
"""The mark after the job's id in a token that is bound to a user, or to a browser session."""

Holder = Callable[[str], str | None]
"""Returns the key of the requesting user or browser session; None: there is none."""


def sign_job_id(job_id: int, bound: str = "", key: str = "") -> str:
    """Return a signed token that names a job.

    `bound`: USER or BROWSER_SESSION. Then only the holder of `key` can open it, which is part of
    the signature and not of the token.
    """
    return _signer(bound, key).sign(f"{job_id}{bound}")


def read_job_token(token: str, who: Holder = lambda bound: None) -> int | None:
    """Return the job id of a token; None: it is forged, too old (STATUS_MAX_AGE), or for another.

    It is forged, too, when it was signed with another STATUS_SALT. `who` is called for tokens that
    are bound alone.
    """
    name = token.partition(":")[0]
    bound = name[-1:] if name[-1:] in (USER, BROWSER_SESSION) else ""
    key = who(bound) if bound else ""
    if key is None:
        return None
    most = timedelta(seconds=get_settings().status_max_age)
    try:
        return int(_signer(bound, key).unsign(token, max_age=most).removesuffix(bound))
    except BadSignature:
        return None


def _signer(bound: str, key: str) -> TimestampSigner:
    parts = json.dumps([get_settings().status_salt, bound, key])
    return TimestampSigner(salt=f"{_SALT}.{parts}")
