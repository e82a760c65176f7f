"""What is wrong, in sentences: the problems of the report on the fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from .. import gates
from ..features import Problem
from ..models.worker import SILENT
from ..queries.figures import FailingTask
from ..queries.fleet import HeldJobs, RunningClaim, StuckLine, StuckQueue, UnknownJobs
from .amounts import LATE_SECONDS, NAMED
from .deaths import Death
from .figures import rough_text
from .held import held_text, is_late
from .workers import LEAVING, DutyReport, WorkerState


def problems_of_workers(
    states: Sequence[WorkerState], ready: str, stuck: Sequence[StuckQueue]
) -> list[Problem]:
    """Return what is wrong with the workers; `ready`: how many jobs are, empty for none."""
    found = []
    alive = [state for state in states if state != WorkerState.SILENT]
    if not alive:
        if ready:
            text = gettext(
                "no worker runs: start one with manage.py runworker; ready jobs: %(ready)s"
            )
        else:
            text = gettext("no worker runs: start one with manage.py runworker")
        found.append(Problem(text % {"ready": ready}, "workers"))
    elif all(state in LEAVING for state in alive):
        if ready:
            text = gettext(
                "every worker drains or stops: start one with manage.py runworker; "
                "ready jobs: %(ready)s"
            )
        else:
            text = gettext("every worker drains or stops: start one with manage.py runworker")
        found.append(Problem(text % {"ready": ready}, "workers"))
    else:
        found += problem_of_untaken(stuck)
    found += problem_of_halted(stuck)
    if silent := len(states) - len(alive):
        text = ngettext(
            "%(silent)d of %(all)d worker gave no sign of life for %(time)s",
            "%(silent)d of %(all)d workers gave no sign of life for %(time)s",
            len(states),
        )
        values = {"silent": silent, "all": len(states), "time": rough_text(SILENT.total_seconds())}
        found.append(Problem(text % values, "workers"))
    return found


def problem_of_deaths(deaths: Sequence[Death], now: datetime) -> list[Problem]:
    """Return that workers have died."""
    text = gettext("workers that died in the last hour: %(workers)s")
    died = gettext("%(name)s on %(host)s (%(time)s ago: %(cause)s)")
    names = [
        died
        % {
            "name": death.name,
            "host": death.host,
            "time": rough_text((now - death.at).total_seconds()),
            "cause": death.cause,
        }
        for death in deaths
    ]
    return listing(text, "workers", names, "changes", narrowed="action__exact=die")


def problem_of_clocks(ahead: Mapping[str, float]) -> list[Problem]:
    """Return that clocks differ from the server's; `ahead`: seconds by host."""
    text = gettext(
        "clocks that differ from the database server's: %(hosts)s. Synchronize them with NTP"
    )
    hosts = [f"{host} ({seconds:+.1f} s)" for host, seconds in sorted(ahead.items())]
    return listing(text, "hosts", hosts, "workers")


def problem_of_untaken(stuck: Sequence[StuckQueue]) -> list[Problem]:
    """Return that queues have ready jobs which no worker takes."""
    text = gettext(
        "ready jobs that no worker takes, in %(queues)s: "
        "start one with manage.py runworker that takes them"
    )
    untaken = [_name(queue.tenant, queue.name) for queue in stuck if not queue.taken]
    return listing(text, "queues", untaken, "queues", narrowed="trouble=no-worker")


def problem_of_unserved(queues: Sequence[tuple[str | None, str]]) -> list[Problem]:
    """Return that no worker takes these queues, which have no ready jobs; tenant None: any."""
    text = gettext("queues that no running worker takes: %(queues)s")
    names = [name if tenant is None else _name(tenant, name) for tenant, name in queues]
    return listing(text, "queues", names, "queues")


def problem_of_connections(allowed: int, needed: int) -> list[Problem]:
    """Return that the workers may open more connections than the server allows."""
    if needed <= allowed:
        return []
    text = gettext(
        "the workers may open %(needed)d database connections, and the server allows %(allowed)d: "
        "use fewer threads, raise max_connections, or put a pooler before the server"
    )
    return [Problem(text % {"needed": needed, "allowed": allowed}, "workers")]


def problem_of_halted(stuck: Sequence[StuckQueue]) -> list[Problem]:
    """Return that queues with ready jobs are paused or have no slots."""
    text = gettext("ready jobs in paused queues, or in queues without slots: %(queues)s")
    halted = [_name(queue.tenant, queue.name) for queue in stuck if queue.halted]
    return listing(text, "queues", halted, "queues")


def problems_of_tasks(unknown: Sequence[UnknownJobs]) -> list[Problem]:
    """Return that workers do not know the tasks of jobs."""
    if not unknown:
        return []
    jobs = sum(task.jobs for task in unknown)
    text = ngettext(
        "no worker that claimed it knows the task of %(jobs)s job: %(tasks)s; "
        "start workers with the code that has it",
        "no worker that claimed them knows the task of %(jobs)s jobs: %(tasks)s; "
        "start workers with the code that has it",
        jobs,
    )
    names = listed_text([task.name for task in unknown])
    return [Problem(text % {"jobs": f"{jobs:,}", "tasks": names}, "jobs")]


def problems_of_failures(failing: Sequence[FailingTask]) -> list[Problem]:
    """Return that tasks fail."""
    text = gettext("%(failed)s of %(ended)s runs of %(task)s failed in the last hour")
    return [
        Problem(
            text % {"failed": f"{task.failures:,}", "ended": f"{task.ended:,}", "task": task.name},
            "failures",
            task.name,
        )
        for task in failing
    ]


STUCK_LINES = (
    (
        "session",
        "halted",
        _("held jobs in halted sessions (resume them in the admin): %(names)s"),
    ),
    ("session", "paused", _("held jobs in paused sessions: %(names)s")),
    ("user", "paused", _("held jobs of users whose caps are paused: %(names)s")),
    ("task", "paused", _("held jobs of paused tasks: %(names)s")),
    ("monitor", "stopped", _("held jobs of monitors that stopped after failures: %(names)s")),
    ("monitor", "paused", _("held jobs of paused monitors: %(names)s")),
)


def problems_of_lines(lines: Sequence[StuckLine]) -> list[Problem]:
    """Return that jobs are held at gates which an operator has to open."""
    found = []
    for kind, why, text in STUCK_LINES:
        names = [
            line.name if kind == "task" else _name(line.tenant, line.name)
            for line in lines
            if (line.kind, line.why) == (kind, why)
        ]
        narrowed = {"halted": "halted=yes", "paused": "paused__exact=1"}.get(why, "")
        found += listing(str(text), "names", sorted(names), f"{kind}s", narrowed=narrowed)
    return found


LATE_HELD = {
    gates.SESSION: _("jobs have been held by sessions for over a minute: %(held)s"),
    gates.USER: _("jobs have been held by users' caps for over a minute: %(held)s"),
    gates.EXCLUSIVE: _("jobs have been held by unique keys for over a minute: %(held)s"),
    gates.TASK: _("jobs have been held by the caps or rates of tasks for over a minute: %(held)s"),
}
HELD_LISTS = {
    gates.SESSION: ("sessions", ""),
    gates.USER: ("users", ""),
    gates.EXCLUSIVE: ("jobs", "state=held"),
    gates.TASK: ("tasks", ""),
}
"""Where what holds jobs is looked at, and what narrows the list."""


def problems_of_held(held: Sequence[HeldJobs], stuck: Sequence[StuckLine]) -> list[Problem]:
    """Return that gates hold jobs for long; `stuck`: lines that have problems of their own."""
    told = {(line.kind, line.tenant, line.name) for line in stuck}
    found = []
    for gate, text in LATE_HELD.items():
        names = []
        for one in held:
            tenant = "" if gate == gates.TASK else one.tenant
            is_told = (gate, tenant, gates.own_key(one.tenant, one.key)) in told
            if one.gate == gate and is_late(one) and not is_told:
                names.append(f"{_name(one.tenant, one.queue)} ({held_text([one])})")
        where, narrowed = HELD_LISTS[gate]
        found += listing(str(text), "held", names, where, narrowed=narrowed)
    return found


def problems_of_claims(strays: Sequence[RunningClaim]) -> list[Problem]:
    """Return that workers are gone which hold jobs."""
    held = sum({claim.worker_id: claim.of_worker for claim in strays}.values())
    if not held:
        return []
    text = ngettext(
        "%(jobs)s job is held by a worker that is gone; a worker rescues it",
        "%(jobs)s jobs are held by workers that are gone; a worker rescues them",
        held,
    )
    return [Problem(text % {"jobs": held}, "workers")]


def problems_of_duties(duties: Sequence[DutyReport], *, is_served: bool) -> list[Problem]:
    """Return that the maintenance is late, or parts of it failed. `is_served`: workers run."""
    newest = min((duty.ran_seconds_ago for duty in duties), default=0.0)
    if is_served and newest > LATE_SECONDS:
        text = gettext(
            "no worker has done the maintenance for %(time)s: "
            "start one with manage.py runworker, without --no-maintenance"
        )
        return [Problem(text % {"time": rough_text(newest)}, "duties")]
    text = gettext("maintenance %(duty)s failed %(time)s ago")
    return [
        Problem(text % {"duty": duty.name, "time": rough_text(duty.ran_seconds_ago)}, "duties")
        for duty in duties
        if duty.error
    ]


def listed_text(names: Sequence[str]) -> str:
    """Return the first NAMED of some names, and how many more there are."""
    listed = ", ".join(names[:NAMED])
    if len(names) <= NAMED:
        return listed
    return gettext("%(names)s and %(count)d more") % {"names": listed, "count": len(names) - NAMED}


def listing(
    text: str, place: str, names: Sequence[str], where: str, *, narrowed: str = ""
) -> list[Problem]:
    """Return the problem of these names, which stand in a text at a place; none without names."""
    return [Problem(text % {place: listed_text(names)}, where, filter=narrowed)] if names else []


def _name(tenant: str, name: str) -> str:
    return f"{tenant or gettext('(no tenant)')}/{name}"
