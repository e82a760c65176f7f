"""What limits a monitor now: why no more of its details run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from ...gate_keys import TASK
from ...models import ConcurrentJobMonitor, Job, TenantQueue
from ...queries.explain import MonitorGate, read_monitor_gate
from ...queries.lists import read_in_order
from ...queries.monitor_page import DetailGroup, group_details
from ...queries.monitors import find_monitors_ahead
from ..conditions import Code
from ..display_limits import COUNTED_TO, PAGE
from ..figures import duration_text
from ..monitor_progress import Progress
from .answer import Cause, Target, cause_of, sorted_causes
from .explain import explain
from .gate_causes import exclusive_causes, session_causes, task_causes, user_causes
from .monitor_causes import stops
from .names import numbers, target_of
from .queue_causes import queue_causes
from .worker_causes import worker_causes

WHOLE = 0
"""The number of details of a cause that concerns the monitor itself."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A cause, and how many details it blocks; WHOLE: it concerns the monitor."""

    cause: Cause
    details: int


@dataclass(frozen=True, slots=True)
class MonitorAnswer:
    """What a monitor does, and each cause that keeps more of its details from running."""

    sentence: str
    bounds: Sequence[Bound]


def explain_monitor(using: str, monitor: ConcurrentJobMonitor, now: Progress) -> MonitorAnswer:
    """Return what limits a monitor, the worst first. `now`: its progress.

    Each read is of an index and bounded. Details in flight are counted up to COUNTED_TO.
    """
    if now.status in ("ended", "cancelled"):
        told = gettext("It has ended.") if now.status == "ended" else gettext("It was cancelled.")
        return MonitorAnswer(told, [])
    with read_in_order(using):
        gate = read_monitor_gate(using, monitor.pk)
        if gate is None:
            return MonitorAnswer(gettext("It does not exist any more."), [])
        if now.status == "ending":
            return _ending(using, gate)
        found = list(_found(using, gate, now))
    details: Counter[tuple[Code, Target | None]] = Counter()
    for bound in found:
        details[bound.cause.code, bound.cause.target] += bound.details
    causes = sorted_causes([bound.cause for bound in found])
    bounds = [Bound(cause, details[cause.code, cause.target]) for cause in causes]
    return MonitorAnswer(_does(now, bounds), bounds)


def _does(now: Progress, bounds: Sequence[Bound]) -> str:
    if now.left and not bounds:
        return gettext("Nothing limits it: all remaining details are in flight.")
    return gettext("%(running)s of the %(left)s remaining details are running.") % {
        "running": f"{now.running:,}",
        "left": f"{now.left:,}",
    }


def _ending(using: str, gate: MonitorGate) -> MonitorAnswer:
    job = Job.objects.using(using).unfinished().filter(pk=gate.anchor_id).first()
    if job is None:
        return MonitorAnswer(gettext("It has ended."), [])
    answer = explain(using, job)
    told = gettext("All details have ended. Its callback: %s") % answer.sentence
    return MonitorAnswer(told, [Bound(cause, 1) for cause in answer.causes])


def _found(using: str, gate: MonitorGate, now: Progress) -> Iterator[Bound]:
    moment = timezone.now()
    target = Target("monitor", gate.id, f"{gate.name} #{gate.id}")
    stopped = [Bound(cause, WHOLE) for cause in _stops(using, gate, target, moment)]
    yield from stopped
    if stopped:
        return
    if not now.left:
        if gate.keep_open:
            told = _("It is open: it waits for more details, or to be closed.")
            yield Bound(cause_of(Code.MONITOR_OPEN, target=target, told=told), WHOLE)
        return
    groups = group_details(using, gate.id, most=COUNTED_TO, groups=PAGE)
    outside = list(_outside(using, gate, groups, moment))
    yield from outside
    yield from _own(gate, target, now, is_alone=not outside)


def _stops(using: str, gate: MonitorGate, target: Target, moment: datetime) -> Iterator[Cause]:
    """Yield why it feeds nothing at all."""
    told = {
        Code.MONITOR_CANCELLED: gettext(
            "It was cancelled. Its unfinished details are being cancelled."
        ),
        Code.MONITOR_PAUSED: gettext("It is paused: no further detail starts."),
        Code.MONITOR_STOPPED: ngettext(
            "It has stopped: %d detail has failed.",
            "It has stopped: %d details have failed.",
            gate.stop_after_failures or 0,
        )
        % (gate.stop_after_failures or 0),
        Code.MONITOR_WITHOUT_SLOTS: gettext("Its “parallel” is 0: no detail starts."),
    }
    for cause in stops(using, gate, target):
        yield replace(cause, sentence=told[cause.code])
    if gate.anchor_line == "session" and gate.session_key is not None:
        waits = _("It waits for its turn in its session.")
        remedy = _("It continues when the jobs before it have ended.")
        yield cause_of(Code.MONITOR_WAITS, target=target, told=waits, remedy=remedy)
        yield from session_causes(using, gate.session_key, gate.anchor_id, moment)


def _own(gate: MonitorGate, target: Target, now: Progress, *, is_alone: bool) -> Iterator[Bound]:
    """Yield what the monitor's own columns do. `is_alone`: nothing else keeps its details."""
    if not now.in_line:
        return
    inside = now.running + now.ready + now.retrying
    if inside < gate.parallel and not gate.interval_seconds:
        told = ngettext_lazy(
            "It has room for %(room)d more detail, which is about to start.",
            "It has room for %(room)d more details, which are about to start.",
            "room",
        )
        room = {"room": gate.parallel - inside}
        yield Bound(cause_of(Code.NOT_RELEASED, room, target, told=told), WHOLE)
    elif inside < gate.parallel:
        values = {
            "interval": duration_text(gate.interval_seconds),
            "time": duration_text(gate.feeds_in_seconds or 0.0),
        }
        told = _("It starts details every %(interval)s: the next time in %(time)s.")
        remedy = _("Lower the interval. With 0, the next detail starts as soon as one ends.")
        found = cause_of(Code.MONITOR_INTERVAL, values, target, told=told, remedy=remedy)
        yield Bound(found, WHOLE)
    elif is_alone:
        told = ngettext_lazy(
            "It has %(parallel)s detail in flight, as many as its “parallel” allows. It holds "
            "%(line)s more.",
            "It has %(parallel)s details in flight, as many as its “parallel” allows. It holds "
            "%(line)s more.",
            gate.parallel,
        )
        values = {"parallel": f"{gate.parallel:,}", "line": f"{now.in_line:,}"}
        remedy = _("Raise “parallel”.")
        found = cause_of(Code.MONITOR_FULL, values, target, told=told, remedy=remedy)
        yield Bound(found, WHOLE)


def _outside(
    using: str, gate: MonitorGate, groups: Sequence[DetailGroup], moment: datetime
) -> Iterator[Bound]:
    """Yield what keeps fed details from running: queues, workers, users, tasks, backoffs."""
    parts: defaultdict[str, list[DetailGroup]] = defaultdict(list)
    for group in groups:
        parts[group.part].append(group)
    ready = parts["ready"][:2]  # the largest: each costs up to eight reads
    exclusive, retrying = parts["exclusive"], parts["retrying"]
    explained = (*ready, *exclusive[:1], *retrying[:1])
    examples = [group.first_id for group in explained]
    found = Job.objects.using(using).unfinished().select_related("queue")
    jobs = {job.pk: job for job in found.filter(pk__in=examples)}
    running: Counter[int] = Counter()
    for group in parts["running"]:
        running[group.queue_id] += group.jobs
    for group in ready:
        if job := jobs.get(group.first_id):  # else it has ended meanwhile
            held = running[group.queue_id]
            yield from _bounds(group, _ready_causes(using, gate, job, held, moment))
    for group in exclusive[:1]:
        if job := jobs.get(group.first_id):
            yield from _bounds(group, exclusive_causes(using, job))
    for group in parts["limit_user"][:1]:
        yield from _bounds(group, user_causes(using, group.gate or "", busy=True))
    for group in parts["task"][:1]:
        job = Job(task=group.gate or "", held_by=TASK)
        yield from _bounds(group, task_causes(using, job, busy=True))
    yield from _backoff(retrying)
    if not ready and retrying and (job := jobs.get(retrying[0].first_id)):
        causes = worker_causes(using, job, job.queue, moment, ready=False)
        yield from _bounds(retrying[0], causes)


def _bounds(group: DetailGroup, causes: Iterable[Cause]) -> Iterator[Bound]:
    return (Bound(cause, group.jobs) for cause in causes)


def _ready_causes(
    using: str, gate: MonitorGate, job: Job, running: int, moment: datetime
) -> Iterator[Cause]:
    """Yield what keeps ready details of one queue. `running`: its slots that the monitor holds."""
    queue = job.queue
    bounds = _queue_bounds(gate, queue)
    if bounds is not None:
        yield bounds
    for cause in queue_causes(using, job, queue, ready=True):
        if cause.code == Code.QUEUE_FULL and bounds and running >= (queue.num_slots or 0):
            continue  # the details themselves hold the slots
        yield _ahead(using, gate, cause) if cause.code == Code.JOBS_BEFORE else cause
    yield from worker_causes(using, job, queue, moment, ready=True)
    yield from task_causes(using, job, busy=True)


def _queue_bounds(gate: MonitorGate, queue: TenantQueue) -> Cause | None:
    slots = queue.num_slots
    if not slots or slots >= gate.parallel:
        return None
    told = ngettext_lazy(
        "Its “parallel” is %(parallel)s, but its queue %(queue)s has %(slots)s slot, so at most "
        "%(slots)s detail runs at once.",
        "Its “parallel” is %(parallel)s, but its queue %(queue)s has %(slots)s slots, so at most "
        "%(slots)s details run at once.",
        slots,
    )
    values = {"parallel": f"{gate.parallel:,}", "slots": f"{slots:,}", "queue": queue}
    return cause_of(Code.QUEUE_BOUNDS_MONITOR, values, target_of(queue), told=told)


def _ahead(using: str, gate: MonitorGate, cause: Cause) -> Cause:
    """Name the monitor whose details come first, if they do."""
    other = find_monitors_ahead(using, [gate.id]).get(gate.id)
    if other is None:
        return cause
    told = _(
        "Its details wait behind those of monitor #%(id)d, which has the same queue and priority."
    )
    remedy = _("Give it a priority with a lower number, or a queue of its own.")
    target = Target("monitor", other, f"#{other}")
    return cause_of(Code.JOBS_BEFORE, {"id": other}, target, told=told, remedy=remedy)


def _backoff(groups: Sequence[DetailGroup]) -> Iterator[Bound]:
    waiting = sum(group.jobs for group in groups)
    if not waiting:
        return
    told = ngettext_lazy(
        "It has failed and waits for another attempt (job %(job)s). It keeps its place in flight.",
        "They have failed and wait for another attempt (job %(job)s, for example). They keep their "
        "places in flight.",
        waiting,
    )
    remedy = _("They start by themselves. “Run now” makes a job ready at once.")
    first = groups[0].first_id
    values = {"job": numbers([first])}
    yield Bound(cause_of(Code.BACKOFF, values, jobs=[first], told=told, remedy=remedy), waiting)
