"""What its queue has to do with a job that does not run."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext, ngettext

from ...models import Job, TenantQueue
from ...queries.explain import count_jobs_before, list_taken_slots
from ..amounts import COUNTED_TO, NAMED
from ..figures import duration_text
from ..queue_loads import seconds_to_start
from .answer import Cause, Code, Target
from .who import set_cause
from .words import numbers, target_of


def queue_causes(using: str, job: Job, queue: TenantQueue, *, ready: bool) -> Iterator[Cause]:
    """Yield what its queue does about a job. `ready`: full slots are a reason, too."""
    if queue.paused:
        told, remedy = gettext("Its queue is paused."), gettext("Resume the queue.")
        yield set_cause(Code.QUEUE_PAUSED, queue, "paused", told, remedy)
    if queue.num_slots == 0:
        told, remedy = gettext("Its queue has 0 slots."), gettext("Give the queue slots.")
        yield set_cause(Code.QUEUE_WITHOUT_SLOTS, queue, "num_slots", told, remedy)
    if ready:
        yield from _full(using, queue)
        yield from _rate(using, queue)
        yield from _before(using, job, queue)


def _full(using: str, queue: TenantQueue) -> Iterator[Cause]:
    if not queue.num_slots:
        return
    holders = list_taken_slots(using, queue.pk, most=queue.num_slots)
    if len(holders) < queue.num_slots:
        return
    ids = holders[:NAMED]
    told = ngettext(
        "The %(slots)d slot of its queue is taken (by job %(jobs)s).",
        "All %(slots)d slots of its queue are taken (the longest by %(jobs)s).",
        queue.num_slots,
    ) % {"slots": queue.num_slots, "jobs": numbers(ids)}
    remedy = gettext("It starts after one of them has ended. More slots let more jobs run at once.")
    yield Cause(Code.QUEUE_FULL, told, remedy, target_of(queue), ids)


def _rate(using: str, queue: TenantQueue) -> Iterator[Cause]:
    seconds = seconds_to_start(using, queue)
    if not seconds:
        return
    told = gettext("Its queue may start %(rate)s jobs in a second: the next one in %(time)s.") % {
        "rate": f"{queue.max_per_second:g}",
        "time": duration_text(seconds),
    }
    remedy = gettext("It starts later by itself. A higher rate of the queue starts jobs faster.")
    yield Cause(Code.RATE_SPENT, told, remedy, target_of(queue))


def _before(using: str, job: Job, queue: TenantQueue) -> Iterator[Cause]:
    count = count_jobs_before(
        using,
        job_id=job.pk,
        lane=job.lane,
        queue_id=queue.pk,
        priority=job.priority,
        most=COUNTED_TO,
    )
    if not count:
        return
    told = (
        gettext("At least %d jobs of its queue are before it.") % count
        if count >= COUNTED_TO
        else ngettext(
            "%d job of its queue is before it.", "%d jobs of its queue are before it.", count
        )
        % count
    )
    remedy = gettext("Give it a priority with a lower number, or the queue more slots or weight.")
    yield Cause(Code.JOBS_BEFORE, told, remedy, Target("job", job.pk, str(job)))
