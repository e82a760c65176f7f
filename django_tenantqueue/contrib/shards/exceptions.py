"""Exceptions of the shards."""

from __future__ import annotations

from ...exceptions import TenantQueueError


class TenantMoving(TenantQueueError):
    """The tenant moves to another database at this moment. Enqueue again some seconds later.

    An open transaction has to be repeated, too. Has `tenant`.
    """

    def __init__(self, tenant: str) -> None:
        super().__init__(
            f"tenant {tenant!r} moves to another database at this moment, and nothing was "
            "enqueued: repeat the call, with its transaction, some seconds later"
        )
        self.tenant = tenant

    def __reduce__(self) -> tuple[type[TenantMoving], tuple[str]]:
        return type(self), (self.tenant,)
