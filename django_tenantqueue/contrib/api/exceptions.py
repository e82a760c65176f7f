"""What clients of an HTTP API are answered. Code of a project does not meet these exceptions."""

from __future__ import annotations

from collections.abc import Mapping

from ...exceptions import TenantQueueError


class ApiError(TenantQueueError):
    """A request of an HTTP API is answered with an error: `status`, `detail`, `headers`."""

    def __init__(
        self, status: int, detail: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


class IdempotencyKeyReused(TenantQueueError):
    """A request has an `Idempotency-Key` that another request had: clients get 422."""
