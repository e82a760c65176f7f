"""Names that other job systems use, and what is used here in their place."""

from __future__ import annotations

_OPTIONS_AND_ARGUMENTS = "options and arguments are separate: task.using(run_at=5).delay(1, 2)"
_DELAY = "task.delay(…), or task.using(queue=…).delay(…) with options"
_CALL = "task.call(…), which describes a call for a detail of a ConcurrentJobMonitor"
_LATER = "task.using(run_at=…).delay(…), with seconds from now, a timedelta or an aware datetime"


def is_of_celery(target: object) -> bool:
    """Whether an object is a task of Celery, or stands for one."""
    return any(one.__module__.partition(".")[0] == "celery" for one in type(target).__mro__)


METHODS = {
    "apply": "task(…), which runs the function here and now",
    "apply_async": _OPTIONS_AND_ARGUMENTS,
    "aenqueue": "await task.adelay(…)",
    "bulk_create": "task.enqueue_many([…])",
    "chunks": "a ConcurrentJobMonitor, or task.enqueue_many([…])",
    "configure": "task.using(…)",
    "defer": _DELAY,
    "defer_async": "await task.adelay(…)",
    "delay_on_commit": "task.delay(…): a job is part of the transaction, and workers see it after "
    "the commit",
    "enqueue": _DELAY,
    "enqueue_at": _LATER,
    "enqueue_in": _LATER,
    "map": "task.enqueue_many([…])",
    "perform_async": _DELAY,
    "perform_at": _LATER,
    "perform_in": _LATER,
    "perform_later": _DELAY,
    "push": _DELAY,
    "request": "current_job() inside the task",
    "retry": "raise Retry(after=…) inside the task",
    "s": _CALL,
    "send": _DELAY,
    "send_with_options": _OPTIONS_AND_ARGUMENTS,
    "set": "task.using(…)",
    "si": _CALL,
    "signature": _CALL,
    "starmap": "task.enqueue_many([…])",
    "submit": _DELAY,
    "subtask": _CALL,
}
"""Methods of tasks elsewhere."""

_AT = "run_at=…, with seconds from now, a timedelta or an aware datetime"
_BACKOFF = "backoff=… (seconds before the second attempt, doubled each time) and backoff_max=…"
_ATTEMPTS = "max_attempts=…, which counts the first run, too"
_IN_TASK = "current_job() inside the task"
_TIMEOUT = "timeout=… (seconds; the run is interrupted) and hard_timeout=… (its process is killed)"
_ONCE = "unique=Unique('until_executed')"
_RATE = "max_per_second=… of @task, or max_per_second of the tenant queue, in the admin"
_RESULT = "nothing: a result is stored with its job"
_CALLBACK = "hooks=…, or the callback of a ConcurrentJobMonitor"

OPTIONS = {
    "acks_late": "nothing: a job of a worker that dies always runs again; see max_attempts",
    "actor_name": "name=…",
    "autoretry_for": "retry_when=(SomeError, …); by default every error is retried",
    "base": "hooks=…, or the setting WRAPPERS",
    "bind": _IN_TASK,
    "broker": "the setting DATABASE",
    "countdown": "run_at=…, with seconds from now: run_at=5",
    "default_retry_delay": _BACKOFF,
    "delay": _AT,
    "dont_autoretry_for": "retry_when=…, or raise Permanent inside the task",
    "eta": _AT,
    "expires": "expires_at=…, with seconds from now, a timedelta or an aware datetime",
    "ignore_result": _RESULT,
    "job_timeout": _TIMEOUT,
    "link": _CALLBACK,
    "link_error": _CALLBACK,
    "lock": "unique=Unique('while_executing'), or session=…",
    "max_age": "expires_at=…",
    "max_backoff": "backoff_max=…",
    "max_retries": _ATTEMPTS,
    "min_backoff": _BACKOFF,
    "pass_context": _IN_TASK,
    "queue_name": "queue=…",
    "queueing_lock": _ONCE,
    "rate_limit": _RATE,
    "reject_on_worker_lost": "nothing: a job of a worker that dies runs again; see max_attempts",
    "retries": _ATTEMPTS,
    "retry": _ATTEMPTS,
    "retry_backoff": _BACKOFF,
    "retry_backoff_max": "backoff_max=…",
    "retry_delay": _BACKOFF,
    "retry_jitter": "nothing: a backoff varies by 20 %",
    "retry_kwargs": _ATTEMPTS,
    "routing_key": "queue=…",
    "run_after": _AT,
    "schedule_at": _AT,
    "schedule_in": _AT,
    "serializer": "nothing: arguments are stored as JSON",
    "soft_time_limit": "timeout=…",
    "store_result": _RESULT,
    "takes_context": _IN_TASK,
    "task_id": "the id of the job that delay() returns, or unique=Unique(…, key=…)",
    "throws": "raise Permanent inside the task",
    "time_limit": _TIMEOUT,
    "track_started": "nothing: a job has a state for it",
    "ttl": "expires_at=…, or Unique(…, ttl=…)",
    "unique_for": "unique=Unique('until_expired', ttl=…)",
}
"""Options of tasks and jobs elsewhere."""
