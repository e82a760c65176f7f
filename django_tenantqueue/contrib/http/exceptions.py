"""How HTTP jobs fail. `answer` is kept with the error: its `status` and the `message` of its body,
"" for none. None: no answer came."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ...exceptions import Permanent, Retry


class HttpJobFailed(Retry):
    """The endpoint of an HTTP job gave no answer, or one that says "later": the job is retried."""

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
    """The endpoint of an HTTP job answered that another attempt would not help."""

    def __init__(self, message: str = "", *, answer: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.answer = answer


class HttpAddressRefused(Permanent):
    """An HTTP job may not call its host, or an address of its host."""
