"""Errors of HTTP jobs. `answer` is stored with the error: its `status` and the `message` of its
body, "" for none. None: there was no answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ...exceptions import Permanent, Retry


class HttpJobFailed(Retry):
    """The endpoint of an HTTP job did not answer, or answered with a temporary error. Retried."""

    def __init__(
        self,
        message: str = "",
        *,
        after: float | timedelta | None = None,
        answer: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, after=after)
        self.answer = answer


class HttpJobRejected(Permanent):
    """The endpoint of an HTTP job rejected it for good. The job is not retried."""

    def __init__(self, message: str = "", *, answer: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.answer = answer


class HttpAddressRefused(Permanent):
    """The host of an HTTP job, or an address of the host, is not allowed."""
