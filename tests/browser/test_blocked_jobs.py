"""Twelve jobs, each blocked by another cause: their pages say why, who did it, and what helps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    Job,
    QueueRate,
    Session,
    TenantQueue,
    UserLimit,
)
from django_tenantqueue.operations import control, monitor_control, session_control
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.states import State
from django_tenantqueue.status.explanation import Code, explain
from tests.factories import make_job, make_queue, make_worker, pause_task

pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]
JOBS = "/admin/tenantqueue/job/"
BY_GRACE = "Last set by grace (admin)"


class Blocked(NamedTuple):
    """A job, its only cause, and what its page says: sentence, who did it, remedy, link."""

    job: Job
    code: Code
    sentence: str
    remedy: str
    link: str = ""
    done_by: str = ""


def held(gate: str, **columns: Any) -> Job:
    return make_job(state=State.HELD, held_by=gate, **{"session_key": None, **columns})


def session_of(key: str, **columns: Any) -> Session:
    return Session.objects.create(
        kind="serial", tenant="acme", key=key, gate_key=f"acme/{key}", **columns
    )


def in_queues() -> list[Blocked]:
    """Return jobs that are ready, in queues that start none."""
    paused, empty = make_queue("acme", "paused"), make_queue("acme", "empty")
    full, spent = make_queue("acme", "full", num_slots=1), make_queue("acme", "slow")
    with acting_as("grace", "admin"):
        control.pause([paused.pk])
        control.tune_queue(empty.pk, num_slots=0)
    running = make_job(full, state=State.RUNNING)
    TenantQueue.objects.filter(pk=spent.pk).update(max_per_second=0.001, burst=1)
    QueueRate.objects.create(queue=spent, debt=1.0, as_of=timezone.now())
    return [
        Blocked(
            make_job(paused),
            Code.QUEUE_PAUSED,
            "Its queue is paused.",
            "Resume the queue.",
            "queue: acme / paused",
            BY_GRACE,
        ),
        Blocked(
            make_job(empty),
            Code.QUEUE_WITHOUT_SLOTS,
            "Its queue has 0 slots.",
            "Give the queue slots.",
            "queue: acme / empty",
            BY_GRACE,
        ),
        Blocked(
            make_job(full),
            Code.QUEUE_FULL,
            f"The 1 slot of its queue is taken (by job #{running.pk}).",
            "It starts after one of them has ended.",
            f"job #{running.pk}",
        ),
        Blocked(
            make_job(spent),
            Code.RATE_SPENT,
            "Its queue may start 0.001 jobs in a second: the next one in 1",
            "It starts later by itself. A higher rate of the queue starts jobs faster.",
            "queue: acme / slow",
        ),
        Blocked(
            make_job(make_queue("acme", "night")),
            Code.NO_WORKER_TAKES,
            "does not take queue “night” of tenant “acme”",
            "Start a worker without filters, or one that takes it",
        ),
    ]


def before_gates() -> list[Blocked]:
    """Return jobs that a session, a user limit, a key, a task or a monitor holds."""
    halter = make_job(state=State.ERROR)
    session_of("busy")
    session_of("halted", halted_at=timezone.now(), halted_by=halter.pk)
    first = make_job(state=State.RUNNING, session_key="acme/busy")
    cap = UserLimit.objects.create(
        kind="limit_user", tenant="acme", key="ada", gate_key="acme/ada", num_slots=1
    )
    of_ada = make_job(state=State.RUNNING, limit_user="acme/ada")
    holder = make_job(state=State.RUNNING, exclusive_key="acme/import")
    monitor = ConcurrentJobMonitor.objects.create(
        name="import", tenant="acme", parallel=2, anchor_id=10**9, created_at=timezone.now()
    )
    with acting_as("grace", "admin"):
        pause_task("tests.paused", allow_unknown=True)
        monitor_control.pause_monitors([monitor.pk])
    ends = "It continues when that job has ended."
    return [
        Blocked(
            held("session", session_key="acme/busy"),
            Code.SESSION_BUSY,
            f"It waits in its session behind job #{first.pk} (running).",
            ends,
            f"job #{first.pk}",
        ),
        Blocked(
            held("session", session_key="acme/halted"),
            Code.SESSION_HALTED,
            f"Its session halted because job #{halter.pk} failed or was cancelled.",
            "Check that job, then resume the session.",
            "session: acme / halted",
        ),
        Blocked(
            held("limit_user", limit_user="acme/ada"),
            Code.USER_FULL,
            f"Its user has reached the limit: 1 job may run at once (now #{of_ada.pk}).",
            "Or raise the user limit.",
            f"user limit: {cap}",
        ),
        Blocked(
            held("exclusive", exclusive_key="acme/import"),
            Code.EXCLUSIVE_HELD,
            f"Job #{holder.pk} has the same exclusive key and runs first.",
            ends,
            f"job #{holder.pk}",
        ),
        Blocked(
            make_job(task="tests.paused"),
            Code.TASK_PAUSED,
            "Its task is paused.",
            "Resume the task.",
            "task: tests.paused",
            BY_GRACE,
        ),
        Blocked(
            held("monitor", monitor_id=monitor.pk),
            Code.MONITOR_PAUSED,
            "Its monitor is paused.",
            "Resume the monitor.",
            "monitor: import",
            BY_GRACE,
        ),
        Blocked(
            make_job(state=State.SCHEDULED, run_at=timezone.now() + timedelta(hours=3)),
            Code.SCHEDULED,
            "It is scheduled for",
            "“Run now” makes it ready at once.",
        ),
    ]


def causes_of(page: Page) -> Locator:
    return page.locator(".tq-answer li")


def test_twelve_blocked_jobs_are_explained_and_one_is_mended(open_page: OpenPage) -> None:
    soon = timezone.now() + timedelta(hours=1)  # the worker is not silent when the test is slow
    make_worker(threads=100, exclude_queues=["night"], heartbeat_at=soon)
    blocked = [*in_queues(), *before_gates()]
    for one in blocked:
        found = explain("default", Job.objects.get(pk=one.job.pk))
        assert [cause.code for cause in found.causes] == [one.code]
    assert len({one.code for one in blocked}) == 12
    page = open_page(JOBS)

    for one in blocked:
        page.goto(JOBS)
        page.locator("#result_list th a").filter(has_text=f"#{one.job.pk} ").click()
        cause = causes_of(page)
        expect(cause).to_have_count(1)
        for told in (one.sentence, one.done_by, one.remedy):
            expect(cause).to_contain_text(told)
        if one.link:
            expect(cause.get_by_role("link", name=one.link)).to_be_visible()

    page.goto(f"{JOBS}{blocked[0].job.pk}/change/")
    page.evaluate("window.marked = true")
    with page.context.expect_page() as opened:
        causes_of(page).get_by_role("link", name="queue: acme / paused").click(
            modifiers=["ControlOrMeta"]
        )
    row = opened.value
    row.uncheck("#id_paused")
    row.click("input[name=_save]")
    expect(row.locator(".messagelist")).to_be_visible()
    expect(causes_of(page)).to_have_count(0)
    expect(page.locator(".tq-answer")).to_contain_text("nothing holds it")
    assert page.evaluate("window.marked") is True


def test_session_that_is_resumed_lets_its_job_through_on_the_open_page(open_page: OpenPage) -> None:
    make_worker(heartbeat_at=timezone.now() + timedelta(hours=1))
    session = session_of("halted", halted_at=timezone.now(), halted_by=1)
    page = open_page(f"{JOBS}{held('session', session_key='acme/halted').pk}/change/")
    expect(causes_of(page)).to_contain_text("Its session halted")

    session_control.resume_sessions([session.pk])

    expect(page.locator(".tq-answer")).to_contain_text("nothing holds it")
    expect(page.locator("h1 .tq-state")).to_have_text("ready")
