"""Names that other job systems use, and what is used here in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from ..exceptions import ELSEWHERE as ELSEWHERE_OF_EXCEPTIONS

_OPTIONS_AND_ARGUMENTS = "task.using(run_at=5).delay(1, 2): options and arguments are separate"
_DELAY = "task.delay(…), or task.using(queue=…).delay(…) with options"
_CALL = (
    "task.call(…), which describes a call for on_success=…, group([…]) or a ConcurrentJobMonitor"
)
_LATER = "task.using(run_at=…).delay(…), with seconds from now, a timedelta or an aware datetime"

_DELAY_ON_COMMIT = (
    "task.delay(…): a job is part of the transaction, and workers see it after the commit"
)
_MANY = "task.enqueue_many([1, 2]), or task.enqueue_many([(1, 2), (3, 4)]) with two arguments each"
_MANY_ASYNC = "await task.aenqueue_many([1, 2])"
_FOLLOW = "task.using(on_success=other.call(Placeholder('result'))).delay(…)"

METHODS = {
    "AsyncResult": "Job.objects.get(pk=…), whose ids are numbers",
    "apply": "task(…), which runs the function here and now",
    "apply_async": _OPTIONS_AND_ARGUMENTS,
    "apply_async_on_commit": _DELAY_ON_COMMIT,
    "aenqueue": "await task.adelay(…)",
    "batch_defer": _MANY,
    "batch_defer_async": _MANY_ASYNC,
    "bulk_create": _MANY,
    "chunks": "group([…]), a ConcurrentJobMonitor, or task.enqueue_many([…])",
    "configure": "task.using(…)",
    "defer": _DELAY,
    "defer_async": "await task.adelay(…)",
    "delay_on_commit": _DELAY_ON_COMMIT,
    "enqueue": _DELAY,
    "enqueue_at": _LATER,
    "enqueue_call": _OPTIONS_AND_ARGUMENTS,
    "enqueue_in": _LATER,
    "get_result": "Job.objects.get(pk=…), which has state and result",
    "aget_result": "await Job.objects.aget(pk=…), which has state and result",
    "max_retries": "current_job().max_attempts - 1 inside the task",
    "map": _MANY,
    "pause": "control.pause(task=…)",
    "perform_async": _DELAY,
    "perform_at": _LATER,
    "perform_in": _LATER,
    "perform_later": _DELAY,
    "push": _DELAY,
    "replace": "task.delay(…) of the other task, and return",
    "request": "current_job() inside the task",
    "resume": "control.resume(task=…)",
    "retry": "raise Retry(after=…) inside the task",
    "run": "task(…), which runs the function here and now",
    "s": _CALL,
    "send": _DELAY,
    "send_with_options": _OPTIONS_AND_ARGUMENTS,
    "set": "task.using(…)",
    "si": _CALL,
    "signature": _CALL,
    "starmap": _MANY,
    "submit": _DELAY,
    "subtask": _CALL,
    "update_state": "current_job().progress(done, total, message) inside the task",
    "bulk": _MANY,
    "bulk_delay": _MANY,
    "bulk_enqueue": _MANY,
    "delay_bulk": _MANY,
    "delay_many": _MANY,
    "enqueue_bulk": _MANY,
    "many": _MANY,
    "perform_all_later": _MANY,
    "perform_bulk": _MANY,
    "push_bulk": _MANY,
    "send_many": _MANY,
    "adelay_many": _MANY_ASYNC,
    "delay_async": "await task.adelay(…)",
    "call_local": "task(…), which runs the function here and now",
    "schedule": "task.using(run_at=…).delay(…) for one run, or schedule=… of @task for many",
    "then": _FOLLOW,
}
"""Methods of tasks elsewhere."""

_WAIT = "job.wait(timeout=…).result, in seconds, and not inside a transaction"
_STATE = (
    "job.refresh().state, which is a State: 'success', 'error', 'cancelled', 'ready', 'running', …"
)
_FINAL = "job.refresh().final"
_CANCEL = "job.cancel()"
_ERROR = "job.refresh().last_error, a dict with class, message and traceback, or None"
_AWAIT = "await job.await_end(timeout=…)"

JOB = {
    "Status": "Job.State, which is State of django_tenantqueue, as in Job.State.ERROR",
    "aget": "(await job.await_end(timeout=…)).result",
    "children": "Job.objects.filter(previous_id=job.pk)",
    "date_done": "job.refresh().finished_at",
    "failed": "job.refresh().state == State.ERROR",
    "forget": "nothing: retention removes old jobs and their results",
    "get": _WAIT,
    "get_status": _STATE,
    "info": "job.refresh(), and then job.progress_done, job.result or job.last_error",
    "is_failed": "job.refresh().state == State.ERROR",
    "is_final": _FINAL,
    "is_finished": _FINAL,
    "is_successful": "job.refresh().state == State.SUCCESS",
    "is_queued": "job.refresh().state == State.READY",
    "is_started": "job.refresh().state == State.RUNNING",
    "join": _WAIT,
    "kwargs": 'job.args["kwargs"]',
    "kept_errors": "job.errors, a list, or job.last_error",
    "latest_result": "job.refresh().result",
    "maybe_throw": "job.refresh().last_error",
    "meta": "job.stats, and current_job().stats inside the task",
    "name": "job.task",
    "parent": "Job.objects.get(pk=job.previous_id)",
    "progress": (
        "job.refresh(), and then job.progress_percent, job.progress_done, job.progress_total, "
        "job.progress_message"
    ),
    "ready": _FINAL,
    "requeue": "job.retry()",
    "retries": "job.attempt - 1",
    "return_value": "job.refresh().result",
    "revoke": _CANCEL,
    "status": _STATE,
    "successful": "job.refresh().state == State.SUCCESS",
    "task_id": "job.pk",
    "traceback": 'job.last_error["traceback"]',
    "abort": _CANCEL,
    "await_": _AWAIT,
    "await_job": _AWAIT,
    "await_result": _AWAIT,
    "await_wait": _AWAIT,
    "wait_async": _AWAIT,
    "async_wait": _AWAIT,
    "attempts": "job.attempt, the number of starts so far",
    "done": _FINAL,
    "enqueued_at": "job.created_at",
    "error": _ERROR,
    "exc_info": _ERROR,
    "exception": _ERROR,
    "get_result": _WAIT,
    "is_done": _FINAL,
    "kill": _CANCEL,
    "queue_name": "job.queue.name",
    "run_after": "job.run_at",
    "scheduled_at": "job.run_at",
    "eta": "job.run_at",
    "stop": _CANCEL,
    "task_name": "job.task",
    "terminate": _CANCEL,
    "update_state": "current_job().progress(done, total, message) inside the task",
}
"""Methods and attributes of results and jobs elsewhere."""

DONE = "group(…).delay(on_end=…), a call that is enqueued when all jobs have ended"
_WAIT_FOR_ALL = (
    "monitor.wait(timeout=…), and then its jobs: [job.result for job in "
    'monitor.details().order_by("id")]; the callback is Job.objects.get(pk=monitor.anchor_id)'
)
_COUNTS = "monitor.progress(), which has status, total, done and failed"
MISSING_RESULTS = (
    "; no result is passed by itself: the callback of a group or monitor reads the results with "
    "current_job().summary.details(), and what follows a job gets its result as "
    "task.call(Placeholder('result'))"
)
"""What becomes of the arguments that callbacks of other systems have."""

GROUP = {
    "apply": "group(…).delay()",
    "apply_async": "group(…).using(queue=…).delay()",
    "get": "group(…).delay(), and " + _WAIT_FOR_ALL,
    "link": DONE,
    "link_error": DONE,
    "on_error": DONE,
    "set": "group(…).using(…)",
    "skew": "interval=… and parallel=… of .using()",
    "tasks": "group(…).calls",
}
"""Methods of groups elsewhere."""

MONITOR = {
    "children": "monitor.details()",
    "completed_count": _COUNTS,
    "failed": _COUNTS,
    "get": _WAIT_FOR_ALL,
    "iterate": "monitor.details()",
    "jobs": "monitor.details()",
    "join": _WAIT_FOR_ALL,
    "join_native": _WAIT_FOR_ALL,
    "ready": _COUNTS,
    "results": "monitor.details()",
    "revoke": "monitor.cancel()",
    "state": _COUNTS,
    "status": _COUNTS,
    "successful": _COUNTS,
    "waiting": _COUNTS,
    "result": _WAIT_FOR_ALL,
    "abort": "monitor.cancel()",
    "done": _COUNTS,
    "stop": "monitor.cancel()",
}
"""Methods of the results of groups elsewhere."""

_START = "task.delay(…): a call only describes what follows a job, or what a group runs"

CALL = {
    "apply_async": _START,
    "clone": "task.call(…) with other arguments",
    "delay": _START,
    "link": "task.using(on_success=…).call(…)",
    "link_error": "task.using(on_end=…).call(…)",
    "on_error": "task.using(on_end=…).call(…)",
    "set": "task.using(…).call(…)",
    "using": "task.using(…).call(…)",
}
"""Methods of signatures elsewhere."""

RUNNING = {
    "meta": "current_job().stats",
    "name": "current_job().task",
    "origin": "current_job().queue",
    "replace": "task.delay(…) of the other task, and return",
    "request": "current_job(), which has id, attempt, tenant and queue itself",
    "retries": "current_job().attempt - 1",
    "retry": "raise Retry(after=…)",
    "save_meta": "nothing: current_job().stats are stored with the job",
    "should_abort": "current_job().cancel_requested, or check(), which raises Cancelled",
    "task_id": "current_job().id",
    "update_progress": "current_job().progress(done, total, message)",
    "update_state": "current_job().progress(done, total, message)",
}
"""Methods and attributes of the running task elsewhere."""

_AT = "run_at=…, with seconds from now, a timedelta or an aware datetime"
_BACKOFF = "backoff=… (seconds before the second attempt, doubled each time) and backoff_max=…"
_ATTEMPTS = "max_attempts=…, which counts the first run, too"
_IN_TASK = "current_job() inside the task"
_TIMEOUT = "timeout=… (seconds; the run is interrupted) and hard_timeout=… (its process is killed)"
_RATE = (
    "control.make_queue(tenant, queue, max_per_second=0.1, burst=6), from django_tenantqueue "
    "import control: for one tenant 6 a minute after a burst of 6; max_per_second=0.1, burst=6 of "
    "@task is one rate of all tenants together"
)
_SLOTS = (
    "control.make_queue(tenant, queue, num_slots=5) for one tenant, "
    "control.tune(task=…, num_slots=5) for the task, or limit_user=… for a user"
)
_RECURRENCE = (
    'schedule=… of @task, as in @task(schedule="0 3 * * *") or @task(schedule=Every(minutes=5)), '
    "with django_tenantqueue.contrib.schedules in INSTALLED_APPS"
)
_UNIQUE = "unique=Unique('until_executed', key='shop-1'), from django_tenantqueue import Unique"
_RESULT = "nothing: a result is stored with its job"
_CALLBACK = "on_success=… (a call that follows a success) or on_end=…, of .using()"

_CALLBACK_OF_ALL = "on_end=…, a call, as in on_end=other.call(1)"

START = {
    "callback": _CALLBACK_OF_ALL,
    "concurrency": "parallel=…",
    "limit": "parallel=…",
    "max_concurrency": "parallel=…",
    "on_done": _CALLBACK_OF_ALL,
    "on_success": _CALLBACK_OF_ALL,
}
"""Options of a group or batch elsewhere, where ours of a monitor differ from those of a job."""

QUEUE = {
    "concurrency": "num_slots",
    "limit": "num_slots",
    "max_concurrency": "num_slots",
    "queue": "name",
    "queue_name": "name",
    "is_paused": "paused",
    "rate": "max_per_second",
    "rate_limit": "max_per_second",
    "slots": "num_slots",
}
"""Columns of queues elsewhere, and ours."""

OF_QUEUE = {
    **QUEUE,
    "enqueue": "task.using(tenant=…, queue=…).delay(…)",
    "hold": "pause()",
    "unpause": "resume()",
}
"""Attributes of queues elsewhere, and ours."""

SCHEDULE = {
    "cron": "expression, which holds it where kind is 'cron'",
    "crontab": "expression, which holds it where kind is 'cron'",
    "func": "task",
    "interval": "expression, which holds it where kind is 'interval'",
    "is_enabled": "enabled",
    "last_run_at": "last_at",
    "next_run": "next_at",
    "next_run_at": "next_at",
    "run_at": "next_at",
    "task_name": "task",
    "timezone": "time_zone",
}
"""Columns of schedules elsewhere, and ours."""

COLUMNS = {
    "Job": {
        "attempts": "attempt",
        "enqueued_at": "created_at",
        "error": "errors, a list",
        "eta": "run_at",
        "kwargs": "args={'args': […], 'kwargs': {…}}",
        "last_error": "errors, a list",
        "name": "task",
        "queue_name": "queue__name",
        "result": "result_data",
        "return_value": "result_data",
        "run_after": "run_at",
        "scheduled_at": "run_at",
        "status": "state",
        "task_name": "task",
        "tenant": "queue__tenant, or Job.objects.for_tenant(…)",
        "user": "limit_user, or created_by for the person",
        "worker": "worker_id",
    },
    "TenantQueue": QUEUE,
    "Schedule": SCHEDULE,
}
"""By the names of models: columns elsewhere, and ours."""
OPTIONS = {
    "acks_late": "nothing: a job of a worker that dies always runs again; see max_attempts",
    "acks_on_failure_or_timeout": "nothing: see max_attempts and retry_when",
    "actor_name": "name=…",
    "aliases": "name=…; a job keeps the name with which it was enqueued",
    "args": _OPTIONS_AND_ARGUMENTS,
    "at_front": "priority=…: a lower number runs first",
    "autoretry_for": "retry_when=(SomeError, …); by default every error is retried",
    "base": "hooks=…, or the setting WRAPPERS",
    "bind": _IN_TASK,
    "broker": "the setting DATABASE",
    "callback": f"{_CALLBACK_OF_ALL}, or on_success=…",
    "compression": "nothing: PostgreSQL compresses large arguments",
    "countdown": "run_at=…, with seconds from now: run_at=5",
    "default_retry_delay": _BACKOFF,
    "delay": _AT,
    "depends_on": (
        "on_success=… of the other job, or session=…, in which jobs run one after another"
    ),
    "description": "labels=[…]",
    "dont_autoretry_for": "retry_when=…, or raise Permanent inside the task",
    "eta": _AT,
    "expires": "expires_at=…, with seconds from now, a timedelta or an aware datetime",
    "exchange": "queue=…",
    "executor": "queue=…, with one of the NEW_QUEUES of TENANTQUEUE['EXECUTORS'][…]",
    "failure_ttl": "the retention rules in the admin",
    "headers": "labels=[…], or an argument of the task",
    "ignore_result": _RESULT,
    "job_id": "the id of the job that .delay() returns, or unique=Unique(…, key=…)",
    "job_timeout": _TIMEOUT,
    "kwargs": _OPTIONS_AND_ARGUMENTS,
    "link": _CALLBACK,
    "link_error": "on_end=…, a call that looks at current_job().previous.state",
    "lock": "unique=Unique('while_executing'), or session=…",
    "max_age": "expires_at=…",
    "max_backoff": "backoff_max=…",
    "max_retries": _ATTEMPTS,
    "meta": "labels=[…], or current_job().stats inside the task",
    "min_backoff": _BACKOFF,
    "monitor": "ConcurrentJobMonitor.objects.start(name, [task.call(…)], parallel=5), or "
    "monitor.add([task.call(…)])",
    "on_done": "on_end=…",
    "on_failure": "session=Serial(…, on_failure='halt') to stop a session, or hooks=…, of @task, "
    "whose failure(job) is called",
    "on_stopped": "hooks=…, whose after(job) is called at each end of a run",
    "on_wait": "session=Serial(…, on_wait=…)",
    "pass_context": _IN_TASK,
    "queue_name": "queue=…",
    "queueing_lock": "unique=Unique('until_executing', key=…)",
    "rate_limit": _RATE,
    "reject_on_worker_lost": "nothing: a job of a worker that dies runs again; see max_attempts",
    "repeat": "schedule=… of @task",
    "result_ttl": "the retention rules in the admin",
    "retries": _ATTEMPTS,
    "retry": _ATTEMPTS,
    "retry_backoff": _BACKOFF,
    "retry_backoff_max": "backoff_max=…",
    "retry_delay": _BACKOFF,
    "retry_jitter": "nothing: a backoff varies at random",
    "retry_kwargs": _ATTEMPTS,
    "retry_on": "retry_when=(SomeError, …); by default every error is retried",
    "retry_policy": "nothing: .delay() is an INSERT of your transaction, which has no broker",
    "routing_key": "queue=…",
    "run_after": _AT,
    "schedule_at": _AT,
    "schedule_in": _AT,
    "shadow": "labels=[…]",
    "serializer": "nothing: arguments are stored as JSON",
    "soft_time_limit": "timeout=…",
    "store_result": _RESULT,
    "takes_context": _IN_TASK,
    "task_id": "the id of the job that .delay() returns, or unique=Unique(…, key=…)",
    "then": "on_success=…",
    "throws": "nothing, or raise Permanent for an error that no other attempt can mend",
    "time_limit": _TIMEOUT,
    "track_started": "nothing: a job has a state for it",
    "ttl": "expires_at=…, or Unique(…, ttl=…)",
    "user": "limit_user=… for at most N jobs of a user at once, created_by=… for who made the job",
    "unique_for": "unique=Unique('until_expired', ttl=…), from django_tenantqueue import Unique",
    "unique_key": _UNIQUE,
    "at": _AT,
    "run_in": _AT,
    "scheduled_at": _AT,
    "backend": "the setting DATABASE, or the key TASKS of Django for django.tasks",
    "concurrency": _SLOTS,
    "max_concurrency": _SLOTS,
    "concurrency_limit": _SLOTS,
    "max_running": _SLOTS,
    "max_instances": _SLOTS,
    "num_slots": _SLOTS,
    "limit": _RATE,
    "rate": _RATE,
    "max_per_minute": _RATE,
    "max_per_hour": _RATE,
    "throttle": _RATE,
    "cron": _RECURRENCE,
    "crontab": _RECURRENCE,
    "every": _RECURRENCE,
    "interval": _RECURRENCE,
    "periodic": _RECURRENCE,
    "run_every": _RECURRENCE,
    "dedupe_key": _UNIQUE,
    "deduplication_key": _UNIQUE,
    "idempotency_key": _UNIQUE,
    "singleton": "unique=Unique('until_executed'), from django_tenantqueue import Unique",
    "max_tries": _ATTEMPTS,
    "num_retries": _ATTEMPTS,
    "attempts": _ATTEMPTS,
}
"""Options of tasks and jobs elsewhere."""

OF_GROUP = {**OPTIONS, **START}
"""Options of a group or monitor elsewhere."""

_JOB_BY_ID = "Job, whose id is a number: Job.objects.get(pk=…)"
_TASK = "task, as in @task(queue=…)"
SYNCED = (
    "; its row of Schedule is made when a worker starts, or by `manage.py tenantqueue schedules "
    "sync`"
)
_SCHEDULE = f"Cron or Every, as in @task(schedule=Cron('30 3 * * *')){SYNCED}"
_SCHEDULES = "Schedule of django_tenantqueue.contrib.schedules.models, or schedule=… of @task"
_MANY_OF = f"task, as in {_MANY}"
_CONTROL = "control, as in control.{}: from django_tenantqueue import control"
_GROUP = "group, as in group([task.call(1), task.call(2)]).delay()"
_NO_APP = "task: there is no app; the decorator of each task, and the setting TENANTQUEUE"

MODULE = {
    **ELSEWHERE_OF_EXCEPTIONS,
    "AsyncResult": _JOB_BY_ID,
    "Celery": _NO_APP,
    "GroupResult": "ConcurrentJobMonitor, which group(…).delay() returns",
    "Batch": _GROUP,
    "PeriodicTask": _SCHEDULES,
    "Queue": (
        "TenantQueue of django_tenantqueue.models, a queue of one tenant: "
        "control.pause(queue='exports'), from django_tenantqueue import control, or "
        "control.make_queue('acme', 'exports').pause(); to enqueue there, "
        "task.using(queue=…).delay(…)"
    ),
    "RetryPolicy": "max_attempts=…, backoff=… and retry_when=… of @task",
    "RetryStrategy": "max_attempts=…, backoff=… and retry_when=… of @task",
    "Schedule": _SCHEDULES,
    "Signature": _CALL,
    "Tenant": "TenantQueue, which has tenant, name and num_slots: a tenant is a text",
    "actor": _TASK,
    "app": _NO_APP,
    "chain": (
        "on_success=…, as in task.using(on_success=other.call(Placeholder('result'))).delay(1); "
        "the job that follows is Job.objects.get(previous_id=job.pk), with the last result"
    ),
    "chord": (
        "group, as in group([task.call(1), task.call(2)]).delay(on_end=other.call()); other() "
        "takes no results: it reads [job.result for job in current_job().summary.details()]; its "
        "own result is Job.objects.get(pk=monitor.anchor_id).wait(timeout=…).result"
    ),
    "chunks": _GROUP,
    "crontab": _SCHEDULE,
    "current_app": _NO_APP,
    "current_task": "current_job, as in current_job().id inside a task",
    "db_periodic_task": _SCHEDULE,
    "delay": "task, as in task.delay(1), or delayed, as in delayed(instance).method(1)",
    "db_task": _TASK,
    "enqueue": "task, as in task.delay(1)",
    "get_task_logger": "logging.getLogger(__name__)",
    "get_queue": "task, as in task.using(queue=…).delay(…)",
    "maybe_signature": _CALL,
    "cron": _SCHEDULE,
    "periodic": _SCHEDULE,
    "periodic_task": _SCHEDULE,
    "schedule": _SCHEDULE,
    "shared_task": _TASK,
    "signature": _CALL,
    "starmap": "task, as in task.enqueue_many([(1, 2), (3, 4)])",
    "subtask": _CALL,
    "xmap": "task, as in task.enqueue_many([1, 2])",
    "batch": _GROUP,
    "bulk_delay": _MANY_OF,
    "bulk_enqueue": _MANY_OF,
    "delay_many": _MANY_OF,
    "enqueue_many": _MANY_OF,
    "cancel": _CONTROL.format("cancel(job)"),
    "cancel_job": _CONTROL.format("cancel(job)"),
    "every": _SCHEDULE,
    "get_current_job": "current_job, as in current_job().id inside a task",
    "get_current_task": "current_job, as in current_job().id inside a task",
    "pause": _CONTROL.format("pause(queue='mail')"),
    "pause_queue": _CONTROL.format("pause(queue='mail')"),
    "resume": _CONTROL.format("resume(queue='mail')"),
    "resume_queue": _CONTROL.format("resume(queue='mail')"),
    "TenantQueue": "TenantQueue of django_tenantqueue.models",
    "Pause": _CONTROL.format("pause(queue='mail')"),
    "TaskResult": "Job, which has state and result: Job.objects.get(pk=…)",
}
"""Names that modules of other systems offer."""


def no_such_name(module: str, name: str) -> Exception:
    """Return the error for a name that the package does not have, with what is used in its place.

    It is an ImportError for a known one: `from … import` hides the text of an AttributeError.
    """
    if name in MODULE:
        return ImportError(f"{module} has no {name!r}: use {MODULE[name]}", name=name)
    from .. import exceptions  # at the top it would ask the package, which asks this module

    found = getattr(exceptions, name, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        return ImportError(f"{module} has no {name!r}: it is in {module}.exceptions", name=name)
    return AttributeError(f"module {module!r} has no attribute {name!r}")


class NotHere:
    """A name that other systems have at a class: to read it says what is used here."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        said = f"{owner.__name__} has no {self._name!r}: use {self._known[self._name]}"
        raise AttributeError(said, name=self._name, obj=None)


def unknown_attribute(owner: object, name: str, known: Mapping[str, str]) -> AttributeError:
    """Return the error for an attribute that does not exist, with what is used in its place."""
    kind = type(owner).__name__
    if name in known:
        # with its name and no owner, so that Python adds no guess of its own
        return AttributeError(f"{kind} has no {name!r}: use {known[name]}", name=name, obj=None)
    return AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=owner)
