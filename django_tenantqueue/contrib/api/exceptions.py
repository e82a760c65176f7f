"""Errors that clients of an HTTP API get. A project's code never sees these exceptions."""

from __future__ import annotations

from collections.abc import Mapping

from ...exceptions import TenantQueueError


class ApiError(TenantQueueError):
    """The error that a client gets: `status` (int), `detail` (str), `headers` (dict of str)."""

    def __init__(
        self, status: int, detail: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


class IdempotencyKeyReused(TenantQueueError):
    """A request repeats the `Idempotency-Key` of another request. Clients get 422."""
