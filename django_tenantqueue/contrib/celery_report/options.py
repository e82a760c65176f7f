"""Settings of Celery that have a counterpart here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_Write = Callable[[Any, Any], str]
"""Takes a value and all settings of the Celery app."""


def _setting(name: str) -> _Write:
    return lambda value, conf: f"{name!r}: {value!r} in TENANTQUEUE"


def _says(text: str) -> _Write:
    return lambda value, conf: text


def _hard_limit(value: Any, conf: Any) -> str:
    """Return the setting for runs that are killed; with a soft limit it counts from that one."""
    soft = conf.task_soft_time_limit
    if not soft:
        return f"'DEFAULT_HARD_TIMEOUT': {value!r} in TENANTQUEUE"
    return f"'HARD_TIMEOUT_GRACE': {value - soft!r} in TENANTQUEUE: it counts from DEFAULT_TIMEOUT"


COUNTERPARTS: dict[str, _Write] = {
    "accept_content": _says("nothing: arguments are JSON"),
    "beat_scheduler": _says("nothing: the worker that does the maintenance enqueues schedules"),
    "broker_transport_options": _says("nothing: there is no broker"),
    "broker_url": _says("nothing: there is no broker"),
    "result_backend": _says("nothing: results are stored with their jobs; see RESULT_STORE"),
    "result_expires": _says("HISTORY_KEEP, and the retention rules in the admin"),
    "result_serializer": _says("nothing: results are JSON"),
    "task_acks_late": _says("nothing: a job of a worker that dies runs again; see max_attempts"),
    "task_annotations": _says("the options of each task: max_per_second=… for a rate_limit"),
    "task_always_eager": _says("EAGER, or django_tenantqueue.testing.eager() in tests"),
    "task_default_priority": _says(
        "priority=… of each task: a lower number runs first, 240 is the default"
    ),
    "task_default_queue": _setting("DEFAULT_QUEUE"),
    "task_default_rate_limit": _says("max_per_second of each task, or of a tenant queue"),
    "task_eager_propagates": _says("nothing: eager mode raises what the task raises"),
    "task_ignore_result": _says("nothing: a job keeps its result"),
    "task_queues": _says("nothing: a tenant's queue is created at its first use"),
    "task_reject_on_worker_lost": _says("nothing: a job of a worker that dies runs again"),
    "task_routes": _says("queue=… of each task, as printed above"),
    "task_serializer": _says("nothing: arguments are JSON"),
    "task_soft_time_limit": _setting("DEFAULT_TIMEOUT"),
    "task_time_limit": _hard_limit,
    "task_track_started": _says("nothing: a job has the state running"),
    "worker_concurrency": lambda value, conf: f"manage.py runworker --threads {value}",
    "worker_max_memory_per_child": lambda value, conf: (
        f"manage.py runworker --max-rss {max(1, int(value) // 1024)}"
    ),
    "worker_max_tasks_per_child": lambda value, conf: f"manage.py runworker --max-jobs {value}",
    "worker_prefetch_multiplier": _says("nothing: workers claim what they have room for"),
}
SECRET = {"broker_transport_options", "broker_url", "result_backend"}
"""Settings whose values may contain a password."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting of Celery that differs from its default."""

    name: str
    value: str
    write: str


def read_settings(app: Any) -> list[SettingRow]:
    """Return the settings that the project has changed, of those that have a counterpart."""
    from celery.app.defaults import DEFAULTS

    found = []
    for name, write in COUNTERPARTS.items():
        value = getattr(app.conf, name, None)
        if value is not None and value != DEFAULTS.get(name):
            shown = "…" if name in SECRET else repr(value)
            found.append(SettingRow(name, shown, write(value, app.conf)))
    return found
