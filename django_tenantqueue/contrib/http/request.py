"""Checks the request of an HTTP job, when it is enqueued and again in the worker."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from django.core.serializers.json import DjangoJSONEncoder

from ...calls.arguments import Placeholder
from ...exceptions import InvalidArgument
from ...settings import TEN_YEARS
from .settings import LONGEST_REQUEST

RULES = ("status", "fireworq")
"""A job succeeds by the HTTP status, or by `status` in the JSON body."""
OWN_HEADERS = (
    *("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"),
    *("transfer-encoding", "upgrade"),
)
"""Headers that jobs may not set, besides `webhook-…`.

A client that sends `Expect` waits for an answer that many servers never send."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")


def check_call(url: object, payload: object = None, **rest: object) -> None:
    """Raise InvalidArgument for a wrong call. Its placeholders have no values yet."""
    check_request(url, **rest)
    encode_payload(payload, encoder=_Checking)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_seconds(value: Any) -> Any:
    """Return a timedelta in seconds, and any other value unchanged."""
    return value.total_seconds() if isinstance(value, timedelta) else value


def check_request(
    url: object,
    *,
    rule: object = "status",
    headers: object = None,
    request_timeout: object = None,
    retry_delay: object = None,
) -> None:
    """Raise InvalidArgument for a wrong request. Messages show no credentials."""
    check_url(url)
    if rule not in RULES:
        raise InvalidArgument(f"rule={rule!r}: it must be {' or '.join(map(repr, RULES))}")
    if headers is not None and not isinstance(headers, Mapping):
        raise InvalidArgument("headers: it must be a dict of str")
    for name, value in (headers or {}).items():
        _check_header(name, value)
    if request_timeout is not None:
        seconds = in_seconds(request_timeout)
        if not _is_number(seconds) or not 0 < seconds <= LONGEST_REQUEST:
            raise InvalidArgument(
                f"request_timeout={request_timeout!r}: it must be seconds or a timedelta, above 0 "
                "and at most a day"
            )
    if retry_delay is not None:
        seconds = in_seconds(retry_delay)
        if not _is_number(seconds) or not 0 <= seconds < TEN_YEARS:
            raise InvalidArgument(
                f"retry_delay={retry_delay!r}: it must be seconds or a timedelta, 0 or more and "
                "below ten years"
            )


def check_url(url: object) -> None:
    """Raise InvalidArgument unless requests can be sent to a URL."""
    if not isinstance(url, str) or _FORBIDDEN.search(url):
        raise InvalidArgument("url: it must be a str without spaces, backslashes and controls")
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise InvalidArgument("url: its host or port is malformed") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidArgument("url: it must begin with https:// or http:// and a host")
    if "@" in parts.netloc:
        raise InvalidArgument(
            f"the url of {host!r} has a user or a password: send an Authorization header, whose "
            "value is masked wherever jobs are shown"
        )


def _check_header(name: object, value: object) -> None:
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidArgument(f"headers: {name!r} cannot be the name of a header")
    if name.lower() in OWN_HEADERS or name.lower().startswith("webhook-"):
        raise InvalidArgument(f"headers: {name!r} is set by the worker, or not sent")
    text = "" if isinstance(value, Placeholder) else value
    if not isinstance(text, str) or re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
        raise InvalidArgument(f"headers: the value of {name!r} must be a str without line breaks")


class _Checking(DjangoJSONEncoder):
    """Accepts placeholders, which get their values when the job runs."""

    def default(self, o: Any) -> Any:
        return None if isinstance(o, Placeholder) else super().default(o)


def encode_payload(
    payload: object,
    rule: object = "status",
    *,
    encoder: type[DjangoJSONEncoder] = DjangoJSONEncoder,
) -> bytes:
    """Return the body of a request. Raises InvalidArgument for values that JSON cannot carry.

    With the rule "fireworq", a str is the body itself, and None is an empty body.
    """
    try:
        if rule == "fireworq" and (payload is None or isinstance(payload, str)):
            return (payload or "").encode()
        return json.dumps(
            payload, cls=encoder, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"payload: it cannot be sent as JSON: {error}") from None


def shown(url: str) -> str:
    """Return a URL for messages: without its query, which may hold a secret."""
    text = url.partition("?")[0].partition("#")[0]
    return text if len(text) <= 200 else f"{text[:200]}…"
