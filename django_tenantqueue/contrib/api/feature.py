"""What API adds to the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...batches import BATCH
from ...features import Duty, Feature
from ...operations.idempotency import prune_idempotency_keys

if TYPE_CHECKING:
    from ...queries.base import Where


class Api(Feature):
    """See features.py for when each method is called."""

    def duties(self, look: Callable[[], Where | None]) -> Iterable[Duty]:
        yield Duty("prune_requests", prune_idempotency_keys, 60.0, BATCH)
