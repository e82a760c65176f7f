"""The arguments of schedules without what is secret in them."""

from __future__ import annotations

from typing import Any

from ...calls.sources import describe_named
from ...exceptions import TenantQueueError
from ...status.masking import MASK, Mask, mask_of
from .models import Schedule


def masked_schedule(row: Schedule) -> dict[str, Any]:
    """Return the arguments of a schedule without what is secret in them.

    All are hidden when the task is not known here: its row does not say which of them are secret.
    """
    call = {"args": row.args, "kwargs": row.kwargs}
    try:
        source, _task = describe_named(row.task)
        mask = mask_of(source.source_type, "", source.source_method, call)
    except TenantQueueError:
        mask = Mask(True, frozenset(), ())
    hidden = mask.call(call)
    return hidden if isinstance(hidden, dict) else {"args": MASK, "kwargs": MASK}
