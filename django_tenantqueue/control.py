"""Control of jobs, queues, tasks, sessions, user limits, monitors and workers: one verb each.

The first argument is a row, a queryset, an id, or several of these; or keywords select the rows:
`pause(queue="mail", tenant="acme")`. Each call is recorded in the audit log, in the name of
acting_as(). `using` is the alias of the jobs' database. Without it, contrib.shards finds the
database by the ids, the rows, or the tenant. Permissions are not checked. A coroutine
awaits the twin of a verb: `await apause(queue="mail")`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from .bulk import start
from .calls import other_systems
from .calls.arguments import decode_args
from .calls.options import (
    check_moment,
    check_queue,
    check_tenant,
    check_text,
    check_whole,
    read_gate,
)
from .conf import database
from .coroutines import twin
from .databases import check_home, database_of_call, database_of_id, database_of_tenant
from .exceptions import InvalidOption, JobNotFound
from .gate_keys import EVERYBODY
from .models import Job, Session, TenantQueue
from .operations import again, control, erasure, failures, sessions
from .operations.actor import acting_as, current_actor
from .operations.result import Result
from .operations.targets import (
    NOT_GIVEN,
    Names,
    Rows,
    Tasks,
    by_keyword,
    check_row,
    choose,
    queues_of_tenant,
)
from .operations.task_control import near_tasks
from .operations.verbs import act
from .status.task_names import is_known
from .stored_error import class_name

LIMIT = failures.MOST
"""Maximum number of jobs that one call for a task's failures changes."""
SELECTORS = ("job", "queue", "task", "session", "limit_user", "monitor")
"""Keywords of tune() that select rows."""


def _switch(verb: str, target: Any, using: str | None, **given: Any) -> Result:
    local = [target, given.get("queue"), given.get("worker")]
    task, monitor, tenant = (given.get(name) for name in ("task", "monitor", "tenant"))
    alias = database_of_call(verb, using, task, monitor=monitor, local=local, tenant=tenant)
    with transaction.atomic(using=alias):
        return act(verb, choose(verb, target, alias, **given), alias)


# jobs


def cancel(
    target: Rows = NOT_GIVEN,
    /,
    *,
    job: Rows = NOT_GIVEN,
    monitor: Rows = NOT_GIVEN,
    task: Tasks = NOT_GIVEN,
    error_class: str | type[BaseException] | None = None,
    queue: Names = NOT_GIVEN,
    tenant: str | None = None,
    limit: int = LIMIT,
    using: str | None = None,
) -> Result:
    """Cancel jobs, or monitors with all their details. Bare ids are those of jobs.

    Waiting jobs end as `cancelled` at once. Jobs that run are `requested`: a task that calls
    `current_job().check()` or `.progress()` stops there. Others are interrupted after the
    setting CANCEL_GRACE. A monitor's callback does not run.

    `task` with `error_class`: up to `limit` jobs of the task that wait after an error of that
    class, in queues of that name or tenant if given, the newest first.
    """
    rows: dict[str, Any] = {"monitor": monitor, "local": [queue], "tenant": tenant}
    alias = database_of_call("cancel", using, target, job, **rows)
    if task is not NOT_GIVEN:
        _check_alone("cancel", target, job, monitor)
        group = _group("cancel", task, error_class, queue, tenant, limit, alias)
        return _of_failures("cancel", failures.cancel_failed(using=alias, **group), group, alias)
    _check_not_narrowed("cancel", error_class, queue, tenant)
    chosen = choose("cancel", target, alias, bare="job", job=job, monitor=monitor)
    return act("cancel", chosen, alias)


def retry(
    target: Rows = NOT_GIVEN,
    /,
    *,
    job: Rows = NOT_GIVEN,
    monitor: Rows = NOT_GIVEN,
    task: Tasks = NOT_GIVEN,
    error_class: str | type[BaseException] | None = None,
    since: datetime | timedelta | float | None = None,
    queue: Names = NOT_GIVEN,
    tenant: str | None = None,
    limit: int = LIMIT,
    using: str | None = None,
) -> Result:
    """Make jobs ready again that ended in `error` or were cancelled. Bare ids are those of jobs.

    Their attempts start at zero, and their errors are kept. Unique keys are taken again if they are
    free. Monitors: their failed details are retried, in steps of a thousand.

    `task` with `error_class` and `since`: up to `limit` jobs of the task that ended in `error`
    since then, with an error of that class, in queues of that name or tenant if given, the newest
    first. `since` is an aware datetime, or a timedelta or seconds before now.
    """
    rows: dict[str, Any] = {"monitor": monitor, "local": [queue], "tenant": tenant}
    alias = database_of_call("retry", using, target, job, **rows)
    if task is not NOT_GIVEN:
        if since is None:
            raise InvalidOption("retry(task=…) needs since=, as in since=timedelta(hours=2)")
        moment = check_moment("since", since)
        if isinstance(moment, timedelta):
            if moment < timedelta(0):
                raise InvalidOption(f"since={since!r}: give how long ago, as in timedelta(hours=2)")
            moment = timezone.now() - moment
        _check_alone("retry", target, job, monitor)
        group = _group("retry", task, error_class, queue, tenant, limit, alias)
        return _of_failures(
            "retry", failures.retry_failed(since=moment, using=alias, **group), group, alias
        )
    _check_not_narrowed("retry", error_class, since, queue, tenant)
    chosen = choose("retry", target, alias, bare="job", job=job, monitor=monitor)
    return act("retry", chosen, alias)


def _check_not_narrowed(verb: str, *given: object) -> None:
    if any(value is not None and value is not NOT_GIVEN for value in given):
        raise InvalidOption(
            f"{verb}(): error_class=, since=, queue= and tenant= belong to task=. For all jobs of "
            f"a queue use bulk({verb!r}, {{'queue': …}})"
        )


def _check_alone(verb: str, *given: object) -> None:
    if any(value is not NOT_GIVEN for value in given):
        raise InvalidOption(f"{verb}(task=…) takes no other rows or ids: call it once for each")


def _group(
    verb: str,
    task: Tasks,
    error_class: str | type[BaseException] | None,
    queue: Names,
    tenant: str | None,
    limit: int,
    using: str,
) -> dict[str, Any]:
    """Return the arguments of failures.retry_failed() that say which jobs, and how many."""
    check_whole("limit", limit, 1, 1_000_000)
    name = getattr(task, "name", task)
    if isinstance(error_class, type):
        error_class = class_name(error_class)
    if error_class is None or not isinstance(name, str):
        raise InvalidOption(
            f"{verb}(task=…) needs one task, and error_class=, as job.last_error has it. For all "
            f"jobs of a task use bulk({verb!r}, {{'task': …}})"
        )
    queues: Sequence[int] | None = None
    if queue is not NOT_GIVEN:
        queues = by_keyword(verb, "queue", queue, using, tenant=tenant).ids
    elif tenant is not None:
        queues = queues_of_tenant(verb, tenant, using).ids
    check_text("task", name)
    check_text("error_class", error_class)
    return {"task": name, "error_class": error_class, "queues": queues, "limit": limit}


def _of_failures(verb: str, done: failures.Done, group: Mapping[str, Any], using: str) -> Result:
    if not done.ids and not is_known(using, task := group["task"]):
        raise InvalidOption(
            f"{verb}(task={task!r}): no such job was found, and no task or method has "
            f"this name here.{near_tasks(task)}"
        )
    return Result.of(done.ids, done.ids, more=done.more)


def run_now(
    target: Rows = NOT_GIVEN, /, *, job: Rows = NOT_GIVEN, using: str | None = None
) -> Result:
    """Make scheduled jobs, or schedules, due now. Bare ids are those of jobs.

    Jobs in the line of a session wait for their turn. A schedule enqueues a job and sets its
    `last_job_id`. A schedule of every tenant becomes due, if it is not paused.
    """
    alias = database_of_call("run_now", using, target, job)
    return act("run_now", choose("run_now", target, alias, bare="job", job=job), alias)


def move(
    target: Rows = NOT_GIVEN,
    /,
    *,
    queue: str | TenantQueue,
    tenant: str | None = None,
    job: Rows = NOT_GIVEN,
    using: str | None = None,
) -> Result:
    """Move waiting jobs to a queue, which is created if needed. Bare ids are those of jobs.

    `queue`: its name, or its row. `tenant`: None is the tenant of each job. Jobs with a session, a
    user limit, an exclusive or unique key, or a monitor are refused if the queue has another
    tenant. The
    `max_waiting` of the queue is ignored. Raises QueueRetired, UnknownQueue.
    """
    alias = database_of_call("move", using, target, job, tenant=tenant)
    name: Any = queue
    if isinstance(queue, TenantQueue):
        check_row(queue, alias)
        if tenant not in (None, queue.tenant):
            raise InvalidOption(f"tenant={tenant!r}: the queue belongs to {queue.tenant!r}")
        name, tenant = queue.name, queue.tenant
    check_queue("queue", name)
    if tenant is not None:
        check_tenant("tenant", tenant)
    chosen = choose("move", target, alias, bare="job", job=job)
    return act("move", chosen, alias, queue=name, tenant=tenant)


def delete(
    target: Rows = NOT_GIVEN,
    /,
    *,
    job: Rows = NOT_GIVEN,
    task: Tasks = NOT_GIVEN,
    using: str | None = None,
) -> Result:
    """Delete finished jobs, task controls, or rows of apps. Bare ids are those of jobs.

    Jobs of a monitor are refused.
    """
    alias = database_of_call("delete", using, target, job, task)
    chosen = choose("delete", target, alias, bare="job", job=job, task=task)
    return act("delete", chosen, alias)


def enqueue_again(
    job: Job | int,
    /,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    queue: str | None = None,
    priority: int | None = None,
    run_at: datetime | timedelta | float | None = None,
) -> Job:
    """Enqueue a new job that runs what `job` runs, and return it. `job` is not changed.

    `args`, `kwargs`: the arguments; those of `job` if both are None. `queue`, `priority`: those of
    `job` if None. `run_at`: an aware datetime, or a timedelta or seconds from now; None: now.
    Another job that has the unique key is returned, with `duplicate` True.

    Raises TypeError when the arguments do not fit, UnknownTask, NotAllowed, Permanent (the object
    of the job is gone), InvalidState (its arguments were removed), JobNotFound, and what
    `.delay()` raises.
    """
    if not isinstance(job, Job):
        found = Job.objects.using(database_of_id(job)).find(job)
        if found is None:
            raise JobNotFound(f"there is no job {job!r}: it was deleted, or its month was dropped")
        job = found
    if args is None and kwargs is None:
        again.source_of(job)  # it says what is wrong with removed arguments
        args, kwargs = decode_args(json.dumps(job.args))
    if isinstance(args, str | bytes) or not isinstance(args or (), Sequence):
        raise TypeError(f"args={args!r}: give a list or a tuple of the arguments")
    if not isinstance(kwargs or {}, Mapping):
        raise TypeError(f"kwargs={kwargs!r}: give a dict of the arguments")
    moment = None if run_at is None else check_moment("run_at", run_at)
    when = timezone.now() + moment if isinstance(moment, timedelta) else moment
    given = tuple(args or ())
    return again.enqueue_again(
        job, given, kwargs or {}, queue=queue, priority=priority, run_at=when
    )


# what jobs wait for


def pause(
    target: Tasks = NOT_GIVEN,
    /,
    *,
    queue: Names = NOT_GIVEN,
    task: Tasks = NOT_GIVEN,
    session: Names = NOT_GIVEN,
    limit_user: Names = NOT_GIVEN,
    monitor: Rows = NOT_GIVEN,
    tenant: str | None = None,
    allow_unknown: bool = False,
    using: str | None = None,
) -> Result:
    """Start no more jobs of queues, tasks, sessions, user limits, monitors; or of rows of apps.

    Running jobs continue. `tenant` with the name of a queue, session or user limit: that tenant's;
    alone: all queues of the tenant. Names without `tenant` are those of every tenant.
    `allow_unknown`: a task of that name need not be known here. Raises UnknownQueue,
    InvalidOption.
    """
    kinds = {
        "queue": queue,
        "task": task,
        "session": session,
        "limit_user": limit_user,
        "monitor": monitor,
    }
    given = {"tenant": tenant, "makes": True, "allow_unknown": allow_unknown}
    return _switch("pause", target, using, **given, **kinds)


def resume(
    target: Tasks = NOT_GIVEN,
    /,
    *,
    queue: Names = NOT_GIVEN,
    task: Tasks = NOT_GIVEN,
    session: Names = NOT_GIVEN,
    limit_user: Names = NOT_GIVEN,
    monitor: Rows = NOT_GIVEN,
    tenant: str | None = None,
    using: str | None = None,
) -> Result:
    """Resume what was paused, and sessions that halted.

    See pause(). A task, session or user limit without a row was not paused, and is not in the
    result.
    """
    kinds = {
        "queue": queue,
        "task": task,
        "session": session,
        "limit_user": limit_user,
        "monitor": monitor,
    }
    return _switch("resume", target, using, tenant=tenant, **kinds)


def retire(
    target: Rows = NOT_GIVEN,
    /,
    *,
    queue: Names = NOT_GIVEN,
    tenant: str | None = None,
    using: str | None = None,
) -> Result:
    """Make queues reject new jobs (QueueRetired). Waiting jobs still run.

    `queue`, `tenant`: see pause().
    """
    return _switch("retire", target, using, queue=queue, tenant=tenant)


def reopen(
    target: Rows = NOT_GIVEN,
    /,
    *,
    queue: Names = NOT_GIVEN,
    tenant: str | None = None,
    using: str | None = None,
) -> Result:
    """Make retired queues accept new jobs again. See retire()."""
    return _switch("reopen", target, using, queue=queue, tenant=tenant)


def tune(target: Tasks = NOT_GIVEN, /, *, using: str | None = None, **given: Any) -> Result:
    """Write columns of jobs, queues, tasks, sessions, user limits, monitors, or rows of apps.

    With rows as first argument, all keywords are columns: `tune(queue, num_slots=5)`. Without,
    `job`, `queue`, `task`, `session`, `limit_user`, `monitor`, `tenant` and `allow_unknown` select
    rows as pause() does, and the others are columns: `tune(queue="mail", num_slots=5)`. Only the
    named columns are written; None removes a limit.

    | rows | columns |
    | --- | --- |
    | jobs that wait | `priority`; `run_at`: an aware datetime, or a timedelta or seconds from now |
    | queues | `num_slots`, `weight`, `max_per_second`, `burst`, `max_waiting`, `executor`,
      `paused`, `retired` |
    | tasks | `num_slots`, `max_per_second`, `burst`, `paused` |
    | sessions | `on_wait`, `on_failure`, `paused` |
    | user limits | `num_slots`, `paused` |
    | monitors | `parallel`, `interval_seconds`, `priority`, `stop_after_failures`, `paused` |

    Raises InvalidOption for another column, Django's ValidationError for a bad value.
    """
    local = [target, given.get("queue")]
    job, task, monitor = (given.get(name) for name in ("job", "task", "monitor"))
    named = given.get("tenant") if target is NOT_GIVEN else None
    alias = database_of_call("tune", using, job, task, monitor=monitor, local=local, tenant=named)
    names = () if target is not NOT_GIVEN else (*SELECTORS, "tenant", "allow_unknown")
    select = {name: given.pop(name) for name in names if name in given}
    if not given:
        raise InvalidOption("tune() needs columns to write, as in tune(queue, num_slots=5)")
    kinds = {name: select.pop(name, NOT_GIVEN) for name in SELECTORS}
    with transaction.atomic(using=alias):
        chosen = choose("tune", target, alias, makes=True, **select, **kinds)
        return act("tune", chosen, alias, **given)


def make_queue(tenant: str, name: str, *, using: str | None = None, **columns: Any) -> TenantQueue:
    """Return a tenant queue, with columns written as tune() does. It is created if needed.

    `tenant`: "" is no tenant. It also creates queues that STRICT_QUEUES would reject. Raises what
    tune() raises.
    """
    for wrong in columns.keys() & other_systems.QUEUE:
        said = f"make_queue() has no {wrong!r}: use {other_systems.QUEUE[wrong]}"
        raise InvalidOption(said, option=wrong, value=columns[wrong])
    alias = using or database_of_tenant(tenant)
    check_home(alias, tenant)
    return control.make_queue(tenant, name, using=alias, **columns)


def limit_user(
    tenant: str, limit_user: str | int | None, num_slots: int | None, *, using: str | None = None
) -> Session:
    """Limit how many jobs of a user run at once; return the row of the limit.

    `limit_user`: as in `.using(limit_user=…)`. None: every user of the tenant who has no
    limit. `num_slots`: None removes the user's own limit. Raises InvalidOption, Django's
    ValidationError.
    """
    key = EVERYBODY if limit_user is None else read_gate("limit_user", limit_user)
    check_tenant("tenant", tenant)
    alias = using or database_of_tenant(tenant)
    check_home(alias, tenant)
    return sessions.make_user_limit(tenant, key, num_slots=num_slots, using=alias)


# workers


def drain(
    target: Rows = NOT_GIVEN, /, *, worker: Names = NOT_GIVEN, using: str | None = None
) -> Result:
    """Make workers claim no more jobs, finish those that run, and exit. Bare ids are of workers.

    They are `requested`: a supervisor reads the request within seconds. `worker`: also its name.
    """
    return _switch("drain", target, using, bare="worker", worker=worker)


def stop(
    target: Rows = NOT_GIVEN, /, *, worker: Names = NOT_GIVEN, using: str | None = None
) -> Result:
    """Drain workers, and return jobs that still run after their `--shutdown-timeout`.

    Attempts of these jobs do not count. See drain().
    """
    return _switch("stop", target, using, bare="worker", worker=worker)


# many rows


def bulk(
    action: str,
    filters: Mapping[str, str] | None,
    values: Mapping[str, Any] | None = None,
    *,
    user: Model | None = None,
) -> Job:
    """Enqueue a job that performs an action on all jobs that match, and return it.

    `action`: "retry", "cancel", "run_now", "change_priority" with `values` {"priority": 120},
    "move" with {"queue": "mail"}, and "tenant" if needed ("" is none), or "delete". `filters` are
    those of the list of jobs: `state`, `tenant` ("" is no tenant), `queue`, `queue_id`, `task`,
    `q`; None: all jobs. Jobs that are created later do not match. `user` limits the jobs to those
    that this user of the admin may see. Raises InvalidOption, InvalidArgument, QueueRetired,
    QueueFull.
    """
    if filters is not None and not (isinstance(filters, Mapping) and filters):
        raise InvalidOption(
            f"bulk({action!r}, {filters!r}): give filters, as in {{'tenant': 'acme'}}. None, and "
            "not an empty dict, acts on all jobs of all tenants"
        )
    if user is not None and not isinstance(user, Model):
        raise InvalidOption(f"bulk(user={user!r}): give a user of the admin, as request.user is")
    alias = database_of_call("bulk", None, tenant=(filters or {}).get("tenant"))
    with database(alias):
        return start(action, filters or {}, values, user=user)


def erase_tenant(
    tenant: str, *, stop: bool = False, wait: float | timedelta = 60.0, using: str | None = None
) -> dict[str, int]:
    """Delete all rows about a tenant; return their numbers by table. It can be repeated.

    Its queues are paused and retired first. `stop`: ask running jobs to stop, and wait for them
    to end for up to `wait`, seconds or a timedelta. Raises InvalidState while jobs run, and
    InvalidOption for "".
    """
    alias = using or database_of_tenant(tenant)
    return erasure.erase_tenant(tenant, using=alias, stop=stop, wait=wait)


acancel = twin(cancel)
aretry = twin(retry)
arun_now = twin(run_now)
amove = twin(move)
adelete = twin(delete)
aenqueue_again = twin(enqueue_again)
apause = twin(pause)
aresume = twin(resume)
aretire = twin(retire)
areopen = twin(reopen)
atune = twin(tune)
amake_queue = twin(make_queue)
alimit_user = twin(limit_user)
adrain = twin(drain)
astop = twin(stop)
abulk = twin(bulk)
aerase_tenant = twin(erase_tenant)

__all__ = [
    "Result",
    "abulk",
    "acancel",
    "acting_as",
    "adelete",
    "adrain",
    "aenqueue_again",
    "aerase_tenant",
    "alimit_user",
    "amake_queue",
    "amove",
    "apause",
    "areopen",
    "aresume",
    "aretire",
    "aretry",
    "arun_now",
    "astop",
    "atune",
    "bulk",
    "cancel",
    "current_actor",
    "delete",
    "drain",
    "enqueue_again",
    "erase_tenant",
    "limit_user",
    "make_queue",
    "move",
    "pause",
    "reopen",
    "resume",
    "retire",
    "retry",
    "run_now",
    "stop",
    "tune",
]
