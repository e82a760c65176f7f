"""What may be wrong in the core: each condition once, the worst first."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from ...features import Condition, Severity
from . import found


class Code(StrEnum):
    """The conditions of the core, worst first: causes and problems are listed in this order."""

    # nothing starts until people act
    QUEUE_MISSING = "queue_missing"
    UNKNOWN_TASK = "unknown_task"
    NO_WORKER = "no_worker"
    WORKERS_LEAVE = "workers_leave"
    NO_WORKER_TAKES = "no_worker_takes"
    NO_WORKER_OF_KIND = "no_worker_of_kind"
    QUEUE_UNSERVED = "queue_unserved"
    NOT_SENT = "not_sent"
    WORKER_GONE = "worker_gone"
    WORKER_SILENT = "worker_silent"
    WORKER_DIED = "worker_died"
    NOT_TAKEN_OVER = "not_taken_over"
    TOO_MANY_CONNECTIONS = "too_many_connections"
    CLOCK_DIFFERS = "clock_differs"
    MAINTENANCE_LATE = "maintenance_late"
    MAINTENANCE_FAILED = "maintenance_failed"
    TASK_FAILING = "task_failing"
    SESSION_HALTED = "session_halted"
    MONITOR_CANCELLED = "monitor_cancelled"
    MONITOR_STOPPED = "monitor_stopped"
    QUEUE_PAUSED = "queue_paused"
    QUEUE_WITHOUT_SLOTS = "queue_without_slots"
    SESSION_PAUSED = "session_paused"
    USER_PAUSED = "user_paused"
    USER_WITHOUT_SLOTS = "user_without_slots"
    MONITOR_PAUSED = "monitor_paused"
    MONITOR_WITHOUT_SLOTS = "monitor_without_slots"
    MONITOR_OPEN = "monitor_open"
    TASK_PAUSED = "task_paused"
    TASK_WITHOUT_SLOTS = "task_without_slots"
    PROMOTION_LATE = "promotion_late"
    # time passes, or other jobs end
    CANCEL_REQUESTED = "cancel_requested"
    MONITOR_WAITS = "monitor_waits"
    SESSION_BUSY = "session_busy"
    USER_FULL = "user_full"
    EXCLUSIVE_HELD = "exclusive_held"
    DETAILS_LEFT = "details_left"
    MONITOR_FULL = "monitor_full"
    MONITOR_INTERVAL = "monitor_interval"
    QUEUE_BOUNDS_MONITOR = "queue_bounds_monitor"
    TASK_FULL = "task_full"
    TASK_RATE_SPENT = "task_rate_spent"
    QUEUE_FULL = "queue_full"
    RATE_SPENT = "rate_spent"
    WORKERS_FULL = "workers_full"
    QUEUE_LATE = "queue_late"
    JOBS_BEFORE = "jobs_before"
    BACKOFF = "backoff"
    SCHEDULED = "scheduled"
    NOT_RELEASED = "not_released"


_people = partial(Condition, severity=Severity.PEOPLE)
_time = partial(Condition, severity=Severity.TIME)
_START = _("Start one with “manage.py runworker”.")
_BY_ITSELF = _("It starts by itself then. “Run now” makes it ready at once.")

CORE: Final = (
    _people(
        Code.QUEUE_MISSING,
        job=_("Its queue #%(queue)d does not exist any more."),
        remedy=_("Move it to another queue, or cancel it."),
    ),
    _people(
        Code.UNKNOWN_TASK,
        title=_("unknown task"),
        job=_(
            "The workers that claimed it do not have the task “%(task)s”, or its arguments do "
            "not fit the task. It is claimed again later."
        ),
        remedy=_("Start workers with the code of the task."),
        fleet=ngettext_lazy(
            "workers claimed %(jobs)s job that they cannot run: %(names)s; "
            "start workers with the code of the task",
            "workers claimed %(jobs)s jobs that they cannot run: %(names)s; "
            "start workers with the code of the tasks",
            "count",
        ),
        where="jobs",
        find=found.unknown_tasks,
    ),
    _people(
        Code.NO_WORKER,
        title=_("no worker runs"),
        job=_("No worker runs."),
        remedy=_START,
        fleet=_("no worker runs: start one with manage.py runworker%(ready)s"),
        where="workers",
        find=found.no_worker,
    ),
    _people(
        Code.WORKERS_LEAVE,
        title=_("every worker drains or stops"),
        job=_("Every worker drains or stops."),
        remedy=_START,
        fleet=_("every worker drains or stops: start one with manage.py runworker%(ready)s"),
        where="workers",
        find=found.workers_leave,
    ),
    _people(
        Code.NO_WORKER_TAKES,
        title=_("no worker takes a queue"),
        job=ngettext_lazy(
            "The %(count)d worker that runs does not take queue “%(queue)s” of tenant “%(tenant)s” "
            "(its --queues, --exclude-queues or --tenants).",
            "None of the %(count)d workers that run takes queue “%(queue)s” of tenant “%(tenant)s” "
            "(their --queues, --exclude-queues or --tenants).",
            "count",
        ),
        remedy=_("Start a worker without filters, or one that takes it: “%(command)s”."),
        fleet=_(
            "ready jobs that no worker takes, in %(names)s: start a worker that takes them with "
            "manage.py runworker"
        ),
        where="queues",
        filter="trouble=no-worker",
        find=found.untaken,
        of_tenants=True,
    ),
    _people(
        Code.NO_WORKER_OF_KIND,
        job=_("It needs a thread, and the workers that take its queue have none."),
        remedy=_("Start a worker with “%(option)s” above 0."),
    ),
    _people(
        Code.QUEUE_UNSERVED,
        title=_("queue that no worker takes"),
        fleet=_("queues that no running worker takes: %(names)s"),
        where="queues",
        find=found.unserved,
    ),
    _people(
        Code.NOT_SENT,
        job=_("Its dispatcher cannot send jobs: %(error)s"),
        remedy=_("Check the broker. Sending is retried every few seconds."),
    ),
    _people(
        Code.WORKER_GONE,
        title=_("jobs of a worker that is gone"),
        job=_("Its worker is gone."),
        remedy=_("Another worker rescues it: keep at least one running."),
        fleet=ngettext_lazy(
            "%(jobs)s job is held by a worker that is gone; a worker rescues it",
            "%(jobs)s jobs are held by workers that are gone; a worker rescues them",
            "jobs",
        ),
        where="workers",
        find=found.gone,
    ),
    _people(
        Code.WORKER_SILENT,
        title=_("silent worker"),
        job=_("Its worker has sent no heartbeat for %(for)s."),
        remedy=_(
            "If the worker is dead, another one rescues the job. If it is alive, check its machine."
        ),
        fleet=ngettext_lazy(
            "%(silent)d of %(all)d worker has sent no heartbeat for %(time)s",
            "%(silent)d of %(all)d workers have sent no heartbeat for %(time)s",
            "all",
        ),
        where="workers",
        find=found.silent,
    ),
    _people(
        Code.WORKER_DIED,
        title=_("dead worker"),
        fleet=_("workers that died in the last hour: %(names)s"),
        where="changes",
        filter="action__exact=die",
        find=found.died,
    ),
    _people(
        Code.NOT_TAKEN_OVER,
        job=_(
            "It was sent to the executor %(executor)s %(for)s ago, and no process has accepted it."
        ),
        remedy=_(
            "Check that the executor's processes run, are not all busy, and read the queue that "
            "the setting EXECUTORS names. Lost messages are sent again."
        ),
    ),
    _people(
        Code.TOO_MANY_CONNECTIONS,
        title=_("too many connections"),
        fleet=_(
            "the workers may open %(needed)d database connections, and the server allows "
            "%(allowed)d: use fewer threads, raise max_connections, or put a pooler before the "
            "server"
        ),
        where="workers",
        find=found.connections,
    ),
    _people(
        Code.CLOCK_DIFFERS,
        title=_("clock that differs"),
        fleet=_(
            "clocks that differ from the database server's: %(names)s. Synchronize them with NTP"
        ),
        where="workers",
        find=found.clocks,
    ),
    _people(
        Code.MAINTENANCE_LATE,
        title=_("late maintenance"),
        fleet=_(
            "no worker has done the maintenance for %(time)s: "
            "start one with manage.py runworker, without --no-maintenance"
        ),
        where="duties",
        find=found.maintenance_late,
    ),
    _people(
        Code.MAINTENANCE_FAILED,
        title=_("failed maintenance"),
        fleet=_("maintenance task %(duty)s failed %(time)s ago"),
        where="duties",
        find=found.maintenance_failed,
    ),
    _people(
        Code.TASK_FAILING,
        title=_("failing task"),
        fleet=_("%(failed)s of %(ended)s runs of %(task)s failed in the last hour"),
        where="failures",
        find=found.failing,
    ),
    _people(
        Code.SESSION_HALTED,
        title=_("halted session"),
        job=_("Its session halted because job #%(job)d failed or was cancelled."),
        remedy=_("Check that job, then resume the session."),
        fleet=_("held jobs in halted sessions (resume them in the admin): %(names)s"),
        where="sessions",
        filter="halted=yes",
        find=found.line("session", "halted"),
        of_tenants=True,
    ),
    _people(
        Code.MONITOR_CANCELLED,
        job=_("Its monitor was cancelled: the job ends soon, without a run."),
        remedy=_("Start another monitor."),
    ),
    _people(
        Code.MONITOR_STOPPED,
        title=_("stopped monitor"),
        job=ngettext_lazy(
            "Its monitor has stopped after %(failures)d failed detail.",
            "Its monitor has stopped after %(failures)d failed details.",
            "failures",
        ),
        remedy=_("Retry the failed details, or raise “stop after failures”."),
        fleet=_("held jobs of monitors that stopped after failures: %(names)s"),
        where="monitors",
        find=found.line("monitor", "stopped"),
        of_tenants=True,
    ),
    _people(
        Code.QUEUE_PAUSED,
        title=_("paused queue"),
        job=_("Its queue is paused."),
        remedy=_("Resume the queue."),
        fleet=_("ready jobs in paused queues, or in queues without slots: %(names)s"),
        where="queues",
        find=found.halted,
        of_tenants=True,
    ),
    _people(
        Code.QUEUE_WITHOUT_SLOTS,
        title=_("queue without slots"),
        job=_("Its queue has 0 slots."),
        remedy=_("Give the queue slots."),
    ),
    _people(
        Code.SESSION_PAUSED,
        title=_("paused session"),
        job=_("Its session is paused."),
        remedy=_("Resume the session."),
        fleet=_("held jobs in paused sessions: %(names)s"),
        where="sessions",
        filter="paused__exact=1",
        find=found.line("session", "paused"),
        of_tenants=True,
    ),
    _people(
        Code.USER_PAUSED,
        title=_("paused user limit"),
        job=_("The limit of its user is paused."),
        remedy=_("Resume the limit."),
        fleet=_("held jobs of users whose limits are paused: %(names)s"),
        where="users",
        filter="paused__exact=1",
        find=found.line("limit_user", "paused"),
        of_tenants=True,
    ),
    _people(
        Code.USER_WITHOUT_SLOTS,
        job=_("Its user may run 0 jobs at once."),
        remedy=_("Raise the limit."),
    ),
    _people(
        Code.MONITOR_PAUSED,
        title=_("paused monitor"),
        job=_("Its monitor is paused."),
        remedy=_("Resume the monitor."),
        fleet=_("held jobs of paused monitors: %(names)s"),
        where="monitors",
        filter="paused__exact=1",
        find=found.line("monitor", "paused"),
        of_tenants=True,
    ),
    _people(
        Code.MONITOR_WITHOUT_SLOTS,
        job=_("“parallel” of its monitor is 0."),
        remedy=_("Raise “parallel” of the monitor."),
    ),
    _people(
        Code.MONITOR_OPEN,
        job=_("Its monitor is open: more details may come."),
        remedy=_("Code closes it with close()."),
    ),
    _people(
        Code.TASK_PAUSED,
        title=_("paused task"),
        job=_("Its task is paused."),
        remedy=_("Resume the task."),
        fleet=_("held jobs of paused tasks: %(names)s"),
        where="tasks",
        filter="paused__exact=1",
        find=found.line("task", "paused"),
    ),
    _people(
        Code.TASK_WITHOUT_SLOTS,
        job=_("Its task may run 0 jobs at once."),
        remedy=_("Give the task slots."),
    ),
    _people(
        Code.PROMOTION_LATE,
        job=_("Its time has come (%(when)s), but maintenance has not made it ready."),
        remedy=_("Check that a worker runs maintenance: “manage.py tenantqueue status”."),
    ),
    _time(
        Code.CANCEL_REQUESTED,
        job=_("Its cancellation was requested at %(at)s."),
        remedy=_("The task stops at its next check, or is interrupted."),
    ),
    _time(
        Code.MONITOR_WAITS,
        job=_("Its monitor waits for its turn in its session."),
        remedy=_("It continues when the jobs before the monitor have ended."),
    ),
    _time(
        Code.SESSION_BUSY,
        title=_("jobs held by a session"),
        job=_("It waits in its session behind job #%(id)d."),
        remedy=_("It continues when that job has ended."),
        fleet=_("jobs have been held by sessions for over a minute: %(names)s"),
        where="sessions",
        find=found.held_by("session"),
        of_tenants=True,
    ),
    _time(
        Code.USER_FULL,
        title=_("jobs held by a user limit"),
        job=ngettext_lazy(
            "Its user has reached the limit: %(most)d job may run at once (now %(jobs)s).",
            "Its user has reached the limit: %(most)d jobs may run at once (now %(jobs)s).",
            "most",
        ),
        remedy=_("It continues when one of them has ended. Or raise the user limit."),
        fleet=_("jobs have been held by user limits for over a minute: %(names)s"),
        where="users",
        find=found.held_by("limit_user"),
        of_tenants=True,
    ),
    _time(
        Code.EXCLUSIVE_HELD,
        title=_("jobs held by a unique key"),
        job=_("Job #%(id)d has the same exclusive key and runs first."),
        remedy=_("It continues when that job has ended."),
        fleet=_("jobs have been held by unique keys for over a minute: %(names)s"),
        where="jobs",
        filter="state=held",
        find=found.held_by("exclusive"),
        of_tenants=True,
    ),
    _time(
        Code.DETAILS_LEFT,
        job=_("It runs after the last detail of its monitor."),
        remedy=_("It continues when the details have ended."),
    ),
    _time(
        Code.MONITOR_FULL,
        job=ngettext_lazy(
            "Its monitor has %(parallel)d detail in flight, and its “parallel” allows no more.",
            "Its monitor has %(parallel)d details in flight, and its “parallel” allows no more.",
            "parallel",
        ),
        remedy=_("It continues when one of them has ended. Or raise “parallel”."),
    ),
    _time(
        Code.MONITOR_INTERVAL,
        job=_("Its monitor starts details every %(interval)s: the next time in %(time)s."),
        remedy=_("It continues then by itself. Or lower the interval."),
    ),
    _time(
        Code.QUEUE_BOUNDS_MONITOR,
        job=ngettext_lazy(
            "Its queue has %(slots)d slot, so at most %(slots)d detail of its monitor runs at "
            "once. “parallel” of the monitor is %(parallel)d.",
            "Its queue has %(slots)d slots, so at most %(slots)d details of its monitor run at "
            "once. “parallel” of the monitor is %(parallel)d.",
            "slots",
        ),
        remedy=_("Give the queue more slots."),
    ),
    _time(
        Code.TASK_FULL,
        title=_("jobs held by a task"),
        job=ngettext_lazy(
            "Its task has reached its limit: %(slots)d job may run at once, of all tenants.",
            "Its task has reached its limit: %(slots)d jobs may run at once, of all tenants.",
            "slots",
        ),
        remedy=_("It continues when one of its jobs has ended. Or raise the task's limit."),
        fleet=_("jobs have been held by the limits or rates of tasks for over a minute: %(names)s"),
        where="tasks",
        find=found.held_by("task"),
        of_tenants=True,
    ),
    _time(
        Code.TASK_RATE_SPENT,
        title=_("task at its rate"),
        job=_(
            "Its task may start %(rate)s jobs in a second, of all tenants: the next one in "
            "%(time)s."
        ),
        remedy=_("It starts later by itself. A higher rate of the task starts jobs faster."),
        fleet=_("task %(task)s may start %(rate)s jobs in a second, %(jobs)s wait"),
        where="tasks",
        find=found.at_their_rates,
    ),
    _time(
        Code.QUEUE_FULL,
        title=_("full queue"),
        job=ngettext_lazy(
            "The %(slots)d slot of its queue is taken (by job %(jobs)s).",
            "All %(slots)d slots of its queue are taken, for the longest time by %(jobs)s.",
            "slots",
        ),
        remedy=_("It starts after one of them has ended. More slots let more jobs run at once."),
    ),
    _time(
        Code.RATE_SPENT,
        job=_("Its queue may start %(rate)s jobs in a second: the next one in %(time)s."),
        remedy=_("It starts later by itself. A higher rate of the queue starts jobs faster."),
    ),
    _time(
        Code.WORKERS_FULL,
        job=_("All %(most)d threads of the workers that take its queue are busy."),
        remedy=_("It starts when one is free. Start more workers if that takes too long."),
    ),
    _time(
        Code.QUEUE_LATE,
        title=_("late queue"),
        fleet=_("ready jobs have waited for over a minute: %(names)s"),
        where="queues",
        filter="trouble=late",
        find=found.late,
        of_tenants=True,
    ),
    _time(
        Code.JOBS_BEFORE,
        job=ngettext_lazy(
            "%(count)d job of its queue is before it.",
            "%(count)d jobs of its queue are before it.",
            "count",
        ),
        remedy=_("Give it a priority with a lower number, or the queue more slots or weight."),
    ),
    _time(
        Code.BACKOFF,
        job=_("It waits for its next attempt (%(next)d of %(most)d) until %(when)s. %(error)s"),
        remedy=_BY_ITSELF,
    ),
    _time(Code.SCHEDULED, job=_("It is scheduled for %(when)s."), remedy=_BY_ITSELF),
    _time(
        Code.NOT_RELEASED,
        job=_("Its %(gate)s has room for it, but has not released it yet."),
        remedy=_("The maintenance of a running worker releases it within about a second."),
    ),
)
