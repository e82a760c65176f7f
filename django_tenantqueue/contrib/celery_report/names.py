"""Names of Celery that code uses, and what is written in their place."""

from __future__ import annotations

from ...calls import foreign

APP_IS_GONE = "remove it with the last task: there is no app"
BROKER = "nothing: a queue exists from its first job on, or is made in the admin"
"""What is written for names of kombu."""
APP = {
    "autodiscover_tasks": "nothing: the modules named tasks of installed apps are imported",
    "config_from_object": "the setting TENANTQUEUE; see the settings above",
    "add_periodic_task": "schedule=… of @task; see the schedules above",
}
"""Methods of an app."""
CONF = {
    "beat_schedule": "schedule=… of @task; see the schedules above",
    "task_always_eager": "run_pending() or eager() of django_tenantqueue.testing",
    "task_eager_propagates": "nothing",
    "task_store_eager_result": "nothing: run_pending() runs jobs, which have results",
}
"""Settings of an app that code changes."""
_CALL = "task.call(…) describes a call"
_STATES = "job.refresh().state: created, queued, running, scheduled, success, error or cancelled"

IMPORTS = {
    "AsyncResult": "from django_tenantqueue import Job; the id of a job is an int",
    "GroupResult": "from django_tenantqueue import ConcurrentJobMonitor; its id is an int",
    "Ignore": "return",
    "MaxRetriesExceededError": (
        "if current_job().attempt == current_job().max_attempts: …, before raise Retry"
    ),
    "Reject": "raise Permanent(…)",
    "Retry": "from django_tenantqueue import Retry",
    "SoftTimeLimitExceeded": "from django_tenantqueue.exceptions import TimeLimitExceeded",
    "Task": "hooks=… of @task, for code around the runs of a task",
    "TaskRevokedError": "if job.state == 'cancelled', after job.wait(timeout=…)",
    "TimeoutError": "from django_tenantqueue.exceptions import WaitTimeout",
    "allow_join_result": "nothing: enqueue what needs the result by then=…, or by on_done=…",
    "chain": "from django_tenantqueue import Placeholder; then=… of .using() names the next call",
    "chord": "from django_tenantqueue import group; on_done=… of .delay() names the callback",
    "crontab": "from django_tenantqueue import Cron",
    "current_app": APP_IS_GONE,
    "current_task": "from django_tenantqueue import current_job",
    "schedule": "from django_tenantqueue import Every",
    "get_task_logger": "logging.getLogger(__name__)",
    "group": "from django_tenantqueue import group",
    "shared_task": "from django_tenantqueue import task",
    "signature": _CALL,
    "states": "from django_tenantqueue import State",
}
SIGNAL = "hooks=… of a task, the setting WRAPPERS, or the package's signals"
"""What is written for another signal."""
SELF = {
    "max_retries": "current_job().max_attempts - 1",
    "name": "current_job().name",
    "replace": "enqueue the other task, and return",
    "request": "current_job(): id, attempt, max_attempts, tenant, queue",
    "update_state": "current_job().progress(done, total, message)",
}
"""What a bound task has."""
REQUEST = {
    "args": "the arguments of the function",
    "delivery_info": "current_job().queue",
    "hostname": "socket.gethostname(); the job's page in the admin names its worker",
    "id": "current_job().id, which is an int",
    "kwargs": "the arguments of the function",
    "parent_id": "current_job().previous, if the job follows another",
    "retries": "current_job().attempt - 1",
    "task": "current_job().name",
    "timelimit": "timeout=… of @task",
}
"""What the request of a bound task has."""
HOOKS = {
    "before_start": "before(job)",
    "on_success": "success(job, result)",
    "on_retry": "error(job, error)",
    "on_failure": "failure(job)",
    "after_return": "after(job)",
}
"""Methods of a task class in Celery, and the hooks that are called at these times."""
_OUTSIDE = "not in a task, nor in the transaction that enqueues"
WAITS = {
    "chain": (
        f"job.wait(timeout=…) waits for the first job ({_OUTSIDE}); the next one is "
        "Job.objects.get(previous_id=job.pk)"
    ),
    "chord": (
        f"Job.objects.get(pk=monitor.anchor_id).wait(timeout=…).result, of the callback; {_OUTSIDE}"
    ),
    "group": (
        f"[job.wait(timeout=…).result for job in monitor.details().order_by('id')]; {_OUTSIDE}"
    ),
    "job": f"job.wait(timeout=…).result; {_OUTSIDE}",
}
"""How a result is waited for, by what was started."""
IN_TESTS = {
    "chain": "run_pending(), and then Job.objects.get(name=…).result of the last task",
    "chord": "run_pending(), and then Job.objects.get(pk=monitor.anchor_id).result",
    "group": ("run_pending(), and then [job.result for job in monitor.details().order_by('id')]"),
    "job": "run_pending(), and then job.refresh().result",
}
"""The same in tests, whose transaction no worker sees."""
WAITING = ("get", "join", "join_native")
"""What waits for a result: see WAITS."""
RESULTS = {
    **{name: text for name, text in foreign.JOB.items() if name not in WAITING},
    "result": "job.refresh().result; after an error it is None, see last_error",
    "state": _STATES,
    "status": _STATES,
}
"""What the result of a task has."""
GROUP_RESULTS = {
    **{name: text for name, text in foreign.MONITOR.items() if name not in WAITING},
    "save": "nothing: a monitor is a row",
}
"""What the result of a group has."""
APPLY = "call the function; in tests, .delay() in eager() where it uses current_job()"
STARTS = {"apply_async", "delay", "delay_on_commit", "apply_async_on_commit", "send_task"}
