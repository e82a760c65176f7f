"""The backend and its task class. Models are imported late: tasks are declared before them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ParamSpec, TypeVar

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.utils import timezone

from ...calls.given_options import merged
from ...calls.options import Options, check_queue, unknown_options
from ...calls.serial import Serial
from ...calls.sources import check_call, register_finder
from ...calls.tenant import get_tenant
from ...calls.unique import Unique
from ...conf import get_settings
from ...databases import database_of_id
from ...exceptions import InvalidOption
from ...states import Priority
from ...text import read_number
from .framework import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
)
from .results import change, new_result, not_begun, result_of, worker_ids
from .running import find_declared, registered

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantQueueTask(Task):  # type: ignore[type-arg]
    """A task of Django's framework, with this package's options for its jobs."""

    tenant: str | None = None
    session: str | int | Serial | None = None
    limit_user: str | int | None = None
    unique: Unique | None = None
    expires_at: datetime | timedelta | float | None = None
    max_attempts: int | None = None
    timeout: float | timedelta | None = None
    hard_timeout: float | timedelta | None = None
    labels: Sequence[str] | None = None
    created_by: str | None = None

    def __post_init__(self) -> None:
        Task.__post_init__(self)
        registered(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> TenantQueueTask:
        """Return the task with other attributes of Django's, and options of jobs."""
        if unknown := [name for name in options if name not in JOB_OPTIONS]:
            raise TypeError(str(unknown_options(unknown, JOB_OPTIONS)))
        changes = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            **options,
        }
        return replace(
            self, **{name: value for name, value in changes.items() if value is not None}
        )


JOB_OPTIONS = tuple(
    sorted({field.name for field in fields(TenantQueueTask)} - {f.name for f in fields(Task)})
)
"""Options of jobs that a task takes besides Django's. OPTIONS sets their defaults."""


class TenantQueueBackend(BaseTaskBackend):
    """Runs the tasks of Django's framework as jobs of this package."""

    task_class = TenantQueueTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """E011: the app is not installed. E012: OPTIONS or QUEUES are wrong."""
        found: list[CheckMessage] = [*super().check(**kwargs)]
        if not apps.is_installed("django_tenantqueue"):
            found.append(
                Error(
                    f"TASKS[{self.alias!r}] uses django_tenantqueue, which is not installed.",
                    hint="Add 'django_tenantqueue' to INSTALLED_APPS. See "
                    "docs/howto/django-tasks.md.",
                    id="tenantqueue.E011",
                )
            )
        try:
            _ = self._defaults  # raises what is wrong
            for name in self.queues:
                check_queue("queue", name)
        except InvalidOption as error:
            found.append(
                Error(
                    f"TASKS[{self.alias!r}] cannot be used: {error}",
                    hint=f"Known OPTIONS: {', '.join(JOB_OPTIONS)}. See "
                    "docs/howto/django-tasks.md.",
                    id="tenantqueue.E012",
                )
            )
        return found

    @cached_property
    def _defaults(self) -> Options:
        if unknown := [name for name in self.options if name not in JOB_OPTIONS]:
            raise unknown_options(unknown, JOB_OPTIONS)
        return merged(Options(), {"max_attempts": 1, **self.options})

    def job_options(self, task: Task[..., Any]) -> Options:
        """Return the options of the task's jobs. Raises InvalidOption."""
        given = {name: getattr(task, name, None) for name in JOB_OPTIONS}
        options = merged(
            self._defaults,
            {
                **{name: value for name, value in given.items() if value is not None},
                "queue": task.queue_name,
                "priority": Priority.DEFAULT - int(task.priority),
                "run_at": task.run_after,
            },
        )
        declared = registered(task).task.queue_name
        return replace(options, queue_is_fixed=task.queue_name != declared)

    def validate_task(self, task: Task[..., Any]) -> None:
        """Raise InvalidTask if the task cannot be enqueued."""
        run_after: Any = task.run_after
        if isinstance(run_after, timedelta):
            replace(task, run_after=None)  # it validates all else
        else:
            super().validate_task(task)
        try:
            self.job_options(task)
        except InvalidOption as error:
            raise InvalidTask(str(error)) from error

    def enqueue(
        self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[P, R]:
        """Enqueue a job in the current transaction and return its result.

        Raises InvalidTask, TypeError for arguments that are not JSON or do not fit the function,
        and what `.delay()` raises.
        """
        from ...execution.eager import run_now
        from ...operations.enqueue import enqueue

        self.validate_task(task)
        call = json.loads(json.dumps(normalize_json([args, kwargs])))
        options = self.job_options(task)
        if getattr(task, "tenant", None) is None:
            options = replace(options, tenant=get_tenant() or options.tenant or "")
        declared = registered(task)
        check_call(declared.name, declared.func, call[0], call[1])
        source = replace(declared.source, source_id=self.alias)
        if get_settings().eager:
            result = new_result(task, self.alias, timezone.now(), args=call[0], kwargs=call[1])
            job = run_now(source, options, tuple(call[0]), call[1])
            change(
                result,
                id=str(job.pk),
                status=TaskResultStatus.SUCCESSFUL,
                started_at=job.started_at,
                finished_at=job.finished_at,
                last_attempted_at=job.started_at,
                worker_ids=worker_ids(1, None),
                _return_value=job.result_data,
            )
        else:
            job = enqueue(source, options, tuple(call[0]), call[1], task=declared)
            found: Any = self.get_result(str(job.pk))
            if job.duplicate:
                return found  # type: ignore[no-any-return]
            result = found
            change(result, **not_begun())  # a worker may be quicker
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult[..., Any]:
        """Return the result of that id. Raises TaskResultDoesNotExist."""
        from ...models import Job

        number, job = read_number(str(result_id)), None
        if number is not None:
            jobs = Job.objects.using(database_of_id(number)).select_related("queue")
            job = jobs.find(number)
        declared = None
        if job is not None and job.source_type == "task":
            declared = find_declared(job.source_method)
        if job is None or declared is None:
            raise TaskResultDoesNotExist(result_id)
        try:
            return result_of(job, declared.task)
        except LookupError as error:  # the cache has dropped what it returned
            raise TaskResultDoesNotExist(result_id) from error


register_finder(find_declared)
