"""The outcome of a job by its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from http import HTTPStatus
from time import time
from typing import Any

from django.utils.http import parse_http_date_safe

from ...calls.arguments import encode_result
from ...conf import get_settings, settings_of
from ...exceptions import InvalidResult
from ...status.display_limits import MESSAGE
from ...text import clean_text
from .exceptions import HttpJobFailed, HttpJobRejected
from .settings import HttpSettings

SHOWN = MESSAGE // 4
"""Characters of a body in the message of an error."""
SPARE_LEVELS = 200
"""Nesting levels that a body kept as JSON must leave to Python's parser."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of an endpoint. `body` is truncated to MAX_BODY_BYTES."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool = False

    @property
    def is_of_a_healthy_endpoint(self) -> bool:
        """Whether the endpoint works, even if it rejected this job."""
        return self.status < 500 and self.status != HTTPStatus.TOO_MANY_REQUESTS

    def result(self) -> dict[str, Any]:
        """Return the result of the job."""
        kept: dict[str, Any] = {"status": self.status, "body": self._content()}
        return {**kept, "body_is_cut": True} if self.is_cut else kept

    def _content(self) -> Any:
        """Return the body, as JSON if possible, which can be masked and queried."""
        text = self.body.decode(errors="replace")
        if not text:
            return None
        try:
            content = json.loads(text)
            may_be_deep = text.count("[") + text.count("{") > SPARE_LEVELS
            spare = SPARE_LEVELS if may_be_deep else 0
            encode_result(reduce(lambda inner, _: [inner], range(spare), content))
        except (ValueError, RecursionError, InvalidResult):
            return clean_text(text, 4 * len(text))
        return content

    def kept(self, said: str = "") -> dict[str, Any]:
        """Return what is stored with the error of a job. `said`: the message of the body."""
        return {"status": self.status, "message": clean_text(said, SHOWN)}

    def excerpt(self) -> str:
        """Return the first characters of the body."""
        text = " ".join(self.body[: 4 * SHOWN].decode(errors="replace").split())
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def judge(rule: str, answer: Answer, where: str) -> dict[str, Any]:
    """Return the result of a successful job. `where`: the URL, for messages.

    Raises HttpJobFailed if another attempt may help, HttpJobRejected if not.
    """
    return _by_body(answer, where) if rule == "fireworq" else _by_status(answer, where)


def _by_status(answer: Answer, where: str) -> dict[str, Any]:
    status = answer.status
    if 200 <= status < 300:
        return answer.result()
    message = f"{where} answered {_named(status)}"
    if excerpt := answer.excerpt():
        message += f": {excerpt}"
    if status in settings_of(HttpSettings).permanent_statuses:
        raise HttpJobRejected(message, answer=answer.kept())
    if 300 <= status < 400:
        message += " (the redirect is not followed: see TENANTQUEUE['HTTP']['MAX_REDIRECTS'])"
    raise HttpJobFailed(message, after=retry_after(answer), answer=answer.kept())


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def retry_after(answer: Answer) -> float | None:
    """Return the seconds of a `Retry-After` header with 429 or 503, at most BACKOFF_MAX, else None.

    A time in the past, by this machine's clock, is ignored.
    """
    text = answer.headers.get("Retry-After", "")
    if answer.status not in (429, 503) or not text:
        return None
    if text.isdecimal():
        seconds = float(text[:9])
    elif (moment := parse_http_date_safe(text)) is not None:
        seconds = moment - time()
    else:
        return None
    return min(seconds, get_settings().backoff_max) if seconds > 0 else None


def _by_body(answer: Answer, where: str) -> dict[str, Any]:
    try:
        content = json.loads(answer.body)
    except (ValueError, RecursionError):
        content = None
    status = content.get("status") if isinstance(content, dict) else None
    if status == "success":
        return answer.result()
    if status not in ("failure", "permanent-failure"):
        cut = (
            f", which is longer than the {len(answer.body):,} bytes that are read "
            "(TENANTQUEUE['HTTP']['MAX_BODY_BYTES'])"
        )
        raise HttpJobFailed(
            f"{where} answered {_named(answer.status)} without a status of success, failure or "
            f"permanent-failure in its body{cut if answer.is_cut else ''}: {answer.excerpt()}",
            answer=answer.kept(),
        )
    said = str(content.get("message") or "")[:SHOWN]
    message = f"{where} answered {status}" + (f": {said}" if said else "")
    failure = HttpJobRejected if status == "permanent-failure" else HttpJobFailed
    raise failure(message, answer=answer.kept(said))
