"""What its queue has to do with a job that does not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...models import Job, TenantQueue
from ...queries.base import fetch
from ...queries.figures import Counts, sum_of_queues
from ..conditions import Code
from ..display_limits import COUNTED_TO, NAMED
from ..figures import duration_text, rough_text
from ..queue_loads import seconds_to_start
from .answer import Cause, Target, cause_of
from .done_by import set_cause
from .names import numbers, target_of

RATE_WITHIN = timedelta(minutes=10)
"""The time whose starts tell when a waiting job may start; "the last 10 minutes" in the text."""


def queue_causes(using: str, job: Job, queue: TenantQueue, *, ready: bool) -> Iterator[Cause]:
    """Yield what its queue does about a job. `ready`: full slots are a reason, too."""
    if queue.paused:
        yield set_cause(Code.QUEUE_PAUSED, queue, "paused")
    if queue.num_slots == 0:
        yield set_cause(Code.QUEUE_WITHOUT_SLOTS, queue, "num_slots")
    if ready:
        yield from _full(using, queue)
        yield from _rate(using, queue)
        yield from _before(using, job, queue)


def _full(using: str, queue: TenantQueue) -> Iterator[Cause]:
    if not queue.num_slots:
        return
    params = {"queue_id": queue.pk, "most": queue.num_slots}
    holders = [job_id for (job_id,) in fetch(using, "list_taken_slots", params)]
    if len(holders) < queue.num_slots:
        return
    ids = holders[:NAMED]
    values = {"slots": queue.num_slots, "jobs": numbers(ids)}
    yield cause_of(Code.QUEUE_FULL, values, target_of(queue), ids)


def _rate(using: str, queue: TenantQueue) -> Iterator[Cause]:
    seconds = seconds_to_start(using, queue)
    if not seconds:
        return
    values = {"rate": f"{queue.max_per_second:g}", "time": duration_text(seconds)}
    yield cause_of(Code.RATE_SPENT, values, target_of(queue))


def _before(using: str, job: Job, queue: TenantQueue) -> Iterator[Cause]:
    params = {
        "id": job.pk,
        "lane": job.lane,
        "queue_id": queue.pk,
        "priority": job.priority,
        "most": COUNTED_TO,
    }
    ((count,),) = fetch(using, "count_jobs_before", params)
    if not count:
        return
    told = _("At least %(count)d jobs of its queue are before it.") if count >= COUNTED_TO else None
    cause = cause_of(Code.JOBS_BEFORE, {"count": count}, Target("job", job.pk, str(job)), told=told)
    estimate = "" if queue.paused or queue.num_slots == 0 else _estimate(using, queue, count)
    yield replace(cause, sentence=f"{cause.sentence} {estimate}".rstrip())


def _estimate(using: str, queue: TenantQueue, before: int) -> str:
    """Return when a job may start that has so many before it; "" when none has started lately."""
    now = timezone.now()
    since = now.replace(second=0, microsecond=0) - RATE_WITHIN
    started = sum_of_queues(using, [queue.pk], since=since).get(queue.pk, Counts()).started
    if not started:
        return ""
    seconds = (before + 1) * (now - since).total_seconds() / started
    text = gettext("Estimated start: in about %s, at the rate of the last 10 minutes.")
    return text % rough_text(seconds)
