"""How the conditions of the fleet are found: the values of their sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from ... import gate_keys
from ...features import Named
from ...models import TaskControl
from ...models.worker import SILENT
from ...queries.tasks import count_tasks
from ..display_limits import COUNTED_TO, LISTED, NAMED, TOTAL_COUNTED_TO
from ..figures import counted_text, rough_text
from ..held import held_text, is_late
from ..queue_troubles import find_late, is_full
from ..thresholds import CLOCK_SECONDS, DUTY_SECONDS, LATE_SECONDS
from ..workers import LEAVING, WorkerState

if TYPE_CHECKING:
    from .look import Look

Values = Iterator[Mapping[str, Any]]


def names(found: Iterable[str]) -> Values:
    """Yield the values of a sentence that names these; nothing when there are none."""
    if listed := list(found):
        yield {"names": listed}


def full_name(tenant: str, name: str, text: str = "%s") -> Named:
    """Return how a sentence names a row of a tenant. `text` adds more to the name."""
    return Named(text % f"{tenant or gettext('(no tenant)')}/{name}", name, tenant=tenant)


# workers


def _alive(look: Look) -> list[WorkerState]:
    return [state for state, _ in look.states if state != WorkerState.SILENT]


def _all_leave(look: Look) -> bool:
    alive = _alive(look)
    return bool(alive) and all(state in LEAVING for state in alive)


def _ready(look: Look) -> Mapping[str, str]:
    if not look.counts.ready:
        return {"ready": ""}
    ready = counted_text(look.counts.ready, TOTAL_COUNTED_TO)
    return {"ready": gettext("; ready jobs: %s") % ready}


def no_worker(look: Look) -> Values:
    """No worker is alive."""
    if not _alive(look):
        yield _ready(look)


def workers_leave(look: Look) -> Values:
    """Every worker that is alive drains or stops."""
    if _all_leave(look):
        yield _ready(look)


def untaken(look: Look) -> Values:
    """Queues have ready jobs which no worker takes."""
    if look.tenants is None and (not _alive(look) or _all_leave(look)):
        return iter(())  # no_worker() and workers_leave() say so
    take_all = look.takers.take_all
    return names(
        full_name(queue.tenant, queue.name)
        for queue in look.ready
        if (queue.executor or not take_all)
        and not look.takers.take(queue.tenant, queue.name, queue.executor)
    )


def unserved(look: Look) -> Values:
    """No worker takes these queues, which have no ready jobs."""
    return names(
        name if tenant is None else full_name(tenant, name) for tenant, name in look.unserved
    )


def halted(look: Look) -> Values:
    """Queues with ready jobs are paused or have no slots."""
    return names(
        full_name(queue.tenant, queue.name)
        for queue in look.ready
        if queue.paused or queue.num_slots == 0
    )


def silent(look: Look) -> Values:
    """Workers gave no sign of life."""
    if count := len(look.states) - len(_alive(look)):
        yield {
            "silent": count,
            "all": len(look.states),
            "time": rough_text(SILENT.total_seconds()),
        }


def died(look: Look) -> Values:
    """Workers have died."""
    text = gettext("%(name)s on %(host)s (%(time)s ago: %(cause)s)")
    return names(
        Named(
            text
            % {
                "name": death.name,
                "host": death.host,
                "time": rough_text((look.now - death.at).total_seconds()),
                "cause": death.cause,
            },
            death.name,
        )
        for death in look.deaths
    )


def clocks(look: Look) -> Values:
    """Clocks of hosts differ from the server's."""
    ahead = {
        row.host: row.clock_ahead_seconds
        for state, row in look.states
        if state != WorkerState.SILENT and abs(row.clock_ahead_seconds) > CLOCK_SECONDS
    }
    return names(
        Named(f"{host} ({seconds:+.1f} s)", host) for host, seconds in sorted(ahead.items())
    )


def connections(look: Look) -> Values:
    """The workers may open more connections than the server allows."""
    allowed, needed = look.connections
    if needed > allowed:
        yield {"needed": needed, "allowed": allowed}


def gone(look: Look) -> Values:
    """Workers are gone which hold jobs."""
    if held := sum({claim.worker_id: claim.of_worker for claim in look.strays}.values()):
        yield {"jobs": held}


# tasks


def unknown_tasks(look: Look) -> Values:
    """Workers do not know the tasks of jobs."""
    if look.unknown:
        yield {"names": [Named(task.task, jobs=task.jobs) for task in look.unknown]}


def failing(look: Look) -> Values:
    """Tasks fail."""
    for task in look.failing:
        failed, ended = f"{task.failures:,}", f"{task.ended:,}"
        yield {"failed": failed, "ended": ended, "task": task.task}


def at_their_rates(look: Look) -> Values:
    """Tasks have more jobs than their rates let start within LATE_SECONDS, the longest waits."""
    controls = TaskControl.objects.using(look.using)
    limited = controls.filter(max_per_second__isnull=False, paused=False).order_by("task")
    found = {control.pk: control for control in limited[:LISTED]}
    if not found:
        return
    waits = [
        (load.line / (found[load.control_id].max_per_second or 1.0), load)
        for load in count_tasks(look.using, list(found), most=COUNTED_TO)
    ]
    late = [(s, load) for s, load in waits if s > LATE_SECONDS or load.line >= COUNTED_TO]
    for _seconds, load in sorted(late, key=lambda wait: -wait[0])[:NAMED]:
        control = found[load.control_id]
        rate, jobs = f"{control.max_per_second:g}", counted_text(load.line, COUNTED_TO)
        yield {"task": control.task, "rate": rate, "jobs": jobs}


# jobs that wait


def line(kind: str, why: str) -> Callable[[Look], Values]:
    """Return what finds lines of this kind that an operator has to open."""

    def find(look: Look) -> Values:
        return names(
            sorted(
                row.name if kind == "task" else full_name(row.tenant, row.name)
                for row in look.lines
                if (row.kind, row.why) == (kind, why)
                and (look.tenants is None or row.tenant in look.tenants)
            )
        )

    return find


def held_by(gate: str) -> Callable[[Look], Values]:
    """Return what finds the jobs that a gate holds for long; line() finds closed gates."""

    def find(look: Look) -> Iterator[Named]:
        told = {(row.kind, row.tenant, row.name) for row in look.lines}
        for one in look.held:
            tenant = "" if gate == gate_keys.TASK else one.tenant
            key = gate_keys.own_key(one.tenant, one.key)
            if one.gate == gate and is_late(one) and (gate, tenant, key) not in told:
                text = f"{full_name(one.tenant, one.queue)} ({held_text([one])})"
                yield Named(text, key, tenant=one.tenant)

    return lambda look: names(find(look))


def late(look: Look) -> Values:
    """Ready jobs wait for long in queues that are not blocked."""
    text = gettext("%s (full)")
    return names(
        full_name(
            queue.tenant, queue.name, text if is_full(queue.num_slots, queue.active) else "%s"
        )
        for queue in find_late(look.busy.queues[:LISTED])
    )


# maintenance


def _newest(look: Look) -> float:
    """Return how long ago the newest duty ran."""
    return min((duty.ran_seconds_ago for duty in look.duties), default=0.0)


def _is_late(look: Look) -> bool:
    return bool(_alive(look)) and _newest(look) > LATE_SECONDS


def maintenance_late(look: Look) -> Values:
    """Workers run, and none does the maintenance."""
    if _is_late(look):
        yield {"time": rough_text(_newest(look))}


def maintenance_failed(look: Look) -> Values:
    """Duties of the maintenance failed when they were done last."""
    for duty in () if _is_late(look) else look.duties:
        if duty.error and duty.ran_seconds_ago < DUTY_SECONDS:
            yield {"duty": duty.name, "time": rough_text(duty.ran_seconds_ago)}
