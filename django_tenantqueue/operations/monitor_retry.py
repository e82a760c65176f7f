"""The retry of a monitor's failed details, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.db import transaction

from ..batch_sizes import BATCH
from ..exceptions import InvalidState
from ..models import Change, ConcurrentJobMonitor
from ..queries.lists import NEWEST
from ..queries.monitors import list_ended_details
from ..states import State
from . import control
from .changes import Entry
from .tuning import row_of


@dataclass(slots=True)
class FailedRetry:
    """Puts failed details into the line again, with one entry in the audit log for all.

    From the newest backwards: those that fail again meanwhile are left for another time, and no
    step reads past what the steps before it have moved. `before` is the end and the id of the last
    one that was reached, `change_id` the entry, so that another process can continue.
    """

    using: str
    monitor: ConcurrentJobMonitor
    before: tuple[datetime | None, int] = (None, NEWEST)
    change_id: int | None = None
    retried: int = 0
    is_done: bool = False

    @classmethod
    def start(cls, using: str, monitor_id: int) -> Self:
        """Return the retry of a monitor's failed details, before its first step.

        Raises InvalidState for a cancelled monitor; ConcurrentJobMonitor.DoesNotExist.
        """
        monitor = row_of(ConcurrentJobMonitor.objects.using(using), monitor_id)
        if monitor.cancelled_at is not None:
            raise InvalidState(
                f"monitor {monitor_id} was cancelled, its details are not retried: start another "
                "one"
            )
        return cls(using, monitor)

    def step(self) -> None:
        """Retry the next BATCH details, in one transaction."""
        pk = self.monitor.pk
        found = list_ended_details(self.using, pk, State.ERROR, before=self.before, most=BATCH)
        details = [job_id for job_id, _ in found if job_id != self.monitor.anchor_id]
        with transaction.atomic(using=self.using):
            count = len(control.retry(details, using=self.using, recorded=False))
            if count:
                self._record(count)
        self.retried += count
        self.is_done = len(found) < BATCH
        if found:
            self.before = (found[-1][1], found[-1][0])

    def _record(self, count: int) -> None:
        monitor = self.monitor
        kind = Change.Kind.MONITOR
        entry = Entry(self.using, Change.Action.RETRY, kind, str(monitor), monitor.tenant)
        if self.change_id is not None:
            entry.change = Change.objects.using(self.using).filter(pk=self.change_id).first()
        entry.add([monitor.pk], after={"retried_details": count})
        assert entry.change is not None
        self.change_id = entry.change.pk
