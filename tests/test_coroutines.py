"""Each public call that uses the database has an async twin, which works in a coroutine."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.sessions.backends.db import SessionStore

import django_tenantqueue
from django_tenantqueue import adelayed, group, testing
from django_tenantqueue.exceptions import NotAllowed, QueueRetired
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.job_monitor import MonitorSummary
from django_tenantqueue.groups import Group
from django_tenantqueue.models import ConcurrentJobMonitor, Job, Session
from django_tenantqueue.models.job_query import JobQuerySet
from django_tenantqueue.models.monitor import MonitorManager
from django_tenantqueue.models.session import SessionQuerySet
from django_tenantqueue.status.your_jobs import ayour_jobs
from django_tenantqueue.tasks import BoundTask, Delayable, Task
from django_tenantqueue.web import views
from tests.factories import make_queue
from tests.testapp import tasks
from tests.testapp.models import Plain, Report

REFERENCE = Path(__file__).parents[1] / "docs/reference"
PAGES = ("tasks", "models", "progress", "status", "testing")
SETTINGS_ONLY = "it uses no database"
LAZY = "a queryset, which reads nothing by itself"
ENTERED = "it is for `async with`, too"
OWNERS: dict[str, Any] = {
    "Task": Task,
    "BoundTask": BoundTask,
    "Group": Group,
    "Delayable": Delayable,
    "Job": Job,
    "Job.objects": JobQuerySet,
    "Session": Session,
    "Session.objects": SessionQuerySet,
    "ConcurrentJobMonitor": ConcurrentJobMonitor,
    "ConcurrentJobMonitor.objects": MonitorManager,
    "current_job()": RunningJob,
    "summary": MonitorSummary,
    "django_tenantqueue": django_tenantqueue,
    "testing": testing,
    "views": views,
}
"""Where the documented calls are. Operations have tests of their own."""
WITHOUT = {
    "Task.using": SETTINGS_ONLY,
    "Task.call": SETTINGS_ONLY,
    "BoundTask.using": SETTINGS_ONLY,
    "BoundTask.call": SETTINGS_ONLY,
    "Group.using": SETTINGS_ONLY,
    "Group.call": SETTINGS_ONLY,
    "Job.wait": "its twin is await_end(): a and wait make a keyword",
    "Job.objects.unfinished": LAZY,
    "Job.objects.finished": LAZY,
    "Job.objects.ready": LAZY,
    "Job.objects.active": LAZY,
    "Job.objects.for_tenant": LAZY,
    "Job.objects.for_user": LAZY,
    "Job.objects.for_source": LAZY,
    "Session.jobs": LAZY,
    "Session.objects.serial": LAZY,
    "Session.objects.user_limits": LAZY,
    "ConcurrentJobMonitor.details": LAZY,
    "ConcurrentJobMonitor.wait": "its twin is await_end()",
    "current_job().progress": "the worker writes it",
    "current_job().check": SETTINGS_ONLY,
    "django_tenantqueue.current_job": SETTINGS_ONLY,
    "django_tenantqueue.get_tenant": SETTINGS_ONLY,
    "django_tenantqueue.group": SETTINGS_ONLY,
    "django_tenantqueue.task": SETTINGS_ONLY,
    "django_tenantqueue.use_tenant": SETTINGS_ONLY,
    "testing.captured_jobs": ENTERED,
    "testing.travel": ENTERED,
    "testing.eager": SETTINGS_ONLY,
}
"""Calls without a twin, and why."""


def calls_of(owner: Any) -> Iterator[str]:
    """Yield the names of the public functions that a class or a module has itself."""
    if owner is django_tenantqueue:
        yield from (n for n in owner.__all__ if inspect.isfunction(getattr(owner, n)))
        return
    if owner is testing:
        yield from (n for n in owner.__all__ if callable(getattr(owner, n)))
        return
    if owner is views:
        yield from ("describe_job", "adescribe_job")
        return
    for name, found in vars(owner).items():
        if inspect.isfunction(found) and not name.startswith("_"):
            yield name


def every_call() -> dict[str, Any]:
    return {f"{at}.{name}": owner for at, owner in OWNERS.items() for name in calls_of(owner)}


def is_twin(owner: Any, name: str) -> bool:
    """Whether a function is the twin of another one."""
    found = getattr(owner, name)
    is_async = inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found)
    return is_async or name == "adelayed"  # which returns what is awaited


def test_each_call_has_a_twin() -> None:
    without = {
        call
        for call, owner in every_call().items()
        if not is_twin(owner, name := call.rpartition(".")[2]) and not hasattr(owner, f"a{name}")
    }

    assert without == WITHOUT.keys() & every_call().keys()


@pytest.mark.parametrize("page", PAGES)
def test_each_documented_call_is_known_here(page: str) -> None:
    text = (REFERENCE / f"{page}.md").read_text()
    named = re.findall(r"^```\{py:(?:function|method)\} ([\w.]+)\(", text, re.MULTILINE)
    named += re.findall(r"^\| `(?:await )?(\w+)\(", text, re.MULTILINE)
    hooks = {"enqueue", "before", "success", "attempt_failed", "failure", "after"}
    known = {call.rpartition(".")[2] for call in every_call()} | {"your_jobs", *hooks}

    assert {name.rpartition(".")[2] for name in named} <= known


def test_twins_are_documented() -> None:
    text = (REFERENCE / "coroutines.md").read_text()
    for call, owner in every_call().items():
        name = call.rpartition(".")[2]
        if is_twin(owner, name):
            assert re.search(rf"\b{name}\(", text), call


def test_twin_shows_the_signature_of_its_call() -> None:
    assert inspect.signature(Job.arefresh) == inspect.signature(Job.refresh)
    assert Job.arefresh.__name__ == "arefresh"
    assert Job.arefresh.__doc__ == "See refresh()."


# they work


@pytest.mark.django_db
def test_jobs_are_enqueued_run_and_read_in_a_coroutine(settings):
    settings.TENANTQUEUE = {
        **settings.TENANTQUEUE,
        "CALLABLES": ["tests.testapp.models.Plain.execute"],
    }
    report = Report.objects.create(title="x")
    plain = Plain.objects.create(title="y")

    async def follow() -> list[Any]:
        jobs = [
            await report.adelay.execute("pdf"),
            await report.adelay(tenant="acme").execute(kind="csv"),
            await Report.adelay.count(),
            await adelayed(plain, priority=120).execute(),
            await adelayed(tasks.echo, tenant="acme")(5),
        ]
        assert {job.pk for job in await testing.arun_pending()} == {job.pk for job in jobs}
        for job in jobs:
            assert await job.arefresh() is job
            assert (await Job.objects.afind(job.pk)).pk == job.pk
        assert len(await Job.objects.afind_many([job.pk for job in jobs])) == len(jobs)
        return [await job.aresult() for job in jobs]

    assert async_to_sync(follow)() == ["x as pdf", "x as csv", 1, "y", 5]


@pytest.mark.django_db
def test_helpers_of_tests_work_in_a_coroutine():
    async def follow() -> int:
        job = await tasks.echo.adelay(1)
        assert await testing.aassert_enqueued(tasks.echo, 1) == job
        await testing.arefute_enqueued(tasks.echo, 2)
        return len(await testing.aenqueued_jobs(tasks.echo))

    assert async_to_sync(follow)() == 1


@pytest.mark.django_db
@pytest.mark.urls("tests.web.urls")
def test_lists_and_links_work_in_a_coroutine():
    async def follow() -> tuple[int, str, str]:
        job = await tasks.echo.using(created_by="7").adelay(1)
        page = await ayour_jobs(user="7")
        status = await views.adescribe_job(page.jobs[0].job)
        return (
            len(page.jobs),
            status["state"],
            await job.astatus_url_for(browser_session=SessionStore()),
        )

    count, state, url = async_to_sync(follow)()
    assert (count, state) == (1, "ready")
    assert url.startswith("/")


@pytest.mark.django_db
def test_group_is_enqueued_in_a_coroutine():
    monitor = async_to_sync(group([tasks.echo.call(1)]).adelay)()

    assert monitor.details().count() == 1


@pytest.mark.django_db
def test_twin_raises_what_its_call_raises():
    queue = make_queue("acme", "old", retired=True)
    report = Plain.objects.create(title="x")

    with pytest.raises(QueueRetired) as caught:
        async_to_sync(tasks.echo.using(tenant="acme", queue="old").adelay)(1)
    with pytest.raises(NotAllowed):
        adelayed(report).execute()

    assert (caught.value.tenant, caught.value.queue) == ("acme", queue.name)
