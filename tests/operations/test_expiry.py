"""A job that has not started by its `expires_at` is cancelled, wherever it waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from django_tenantqueue import Serial, Unique
from django_tenantqueue.models import Job, Session
from django_tenantqueue.operations import control, maintain
from django_tenantqueue.operations.session_control import make_user_limit
from django_tenantqueue.queries.control import find_expired
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import make_job, make_queue, pause_task, state_of, states_of
from tests.operations.monitors import anchor_of, start, states
from tests.testapp.tasks import add, echo, noop

pytestmark = pytest.mark.django_db

PAST = timedelta(minutes=-1)


def expire_now(*ids: int) -> None:
    """Let jobs have expired, once they have been let through their gates."""
    run_commit_hooks("default")
    jobs = Job.objects.unfinished().filter(pk__in=ids) if ids else Job.objects.unfinished()
    jobs.update(expires_at=timezone.now() + PAST)


def test_expired_head_in_a_paused_queue_lets_its_session_go_on() -> None:
    head = noop.using(session="s", queue="stopped").delay()
    after = noop.using(session="s").delay()
    control.pause([head.queue_id])
    expire_now(head.pk)

    assert maintain.expire("default") == 1

    run_commit_hooks("default")
    assert (head.refresh().state, after.refresh().state) == ("cancelled", "ready")
    assert head.last_error is not None
    assert head.last_error["message"] == "it expired before it could start"
    assert head.last_error["class"] == "django_tenantqueue.exceptions.Cancelled"
    assert maintain.expire("default") == 0


def test_expired_jobs_are_cancelled_wherever_they_wait() -> None:
    later = timedelta(hours=1)
    make_user_limit("", "7", num_slots=1)
    pause_task(add.name)
    stopped = noop.using(queue="stopped").delay()
    control.pause([stopped.queue_id])
    waiting = [
        stopped,
        noop.using(run_at=later).delay(),
        noop.using(session="s", run_at=later).delay(),
        *(noop.using(limit_user="7").delay() for _ in range(2)),
        *(noop.using(unique=Unique("while_executing")).delay() for _ in range(2)),
        make_job(state="scheduled", attempt=1, run_at=timezone.now() + later),
        make_job(state="held", held_by="task", task=add.name),
    ]
    detail = start([noop.call()], parallel=0).details().get()
    fresh = [noop.delay(), noop.using(expires_at=later).delay()]
    running = make_job(state="running", expires_at=timezone.now() + PAST)
    ids = [*(job.pk for job in waiting), detail.pk]
    expire_now(*ids)

    assert maintain.expire("default") == len(ids)

    assert set(states_of(ids).values()) == {"cancelled"}
    assert set(states_of([job.pk for job in fresh]).values()) == {"ready"}
    assert state_of(running.pk) == "running"


def test_expired_jobs_are_cancelled_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintain, "BATCH", 2)
    queue = make_queue(paused=True)
    ids = [make_job(queue).pk for _ in range(5)]
    expire_now()
    Job.objects.filter(pk=ids[3]).update(expires_at=F("expires_at") - timedelta(hours=1))

    assert maintain.expire("default") == 2
    assert state_of(ids[3]) == "cancelled"  # the earliest
    assert [maintain.expire("default") for _ in range(3)] == [2, 1, 0]


def test_expired_details_make_room_and_the_monitor_ends() -> None:
    monitor = start([noop.call() for _ in range(4)], parallel=2, on_end=echo.call("done"))
    expire_now(*monitor.details().order_by("pk").values_list("pk", flat=True)[:3])

    assert maintain.expire("default") == 3

    assert states(monitor) == ["cancelled"] * 3 + ["ready"]
    assert [job.result for job in run_pending()] == [None, "done"]
    assert monitor.progress().cancelled == 3


@pytest.mark.parametrize("session", [None, "s"])
def test_expired_callback_waits_for_its_details_and_hides_no_other(
    session: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lasts as long as they do: then its turn comes, and ends."""
    monkeypatch.setattr(maintain, "BATCH", 1)
    if session:
        noop.using(session=session).delay()
    monitor = start([noop.call()], parallel=1, session=session, on_end=echo.call("never"))
    expire_now(monitor.anchor_id)
    other = make_job()
    expire_now(other.pk)

    assert maintain.expire("default") == 1
    assert state_of(other.pk) == "cancelled"
    assert anchor_of(monitor).state == "held"

    run_pending()
    assert anchor_of(monitor).state == "cancelled"


def test_unique_key_is_free_when_its_job_has_expired() -> None:
    task = noop.using(unique=Unique("until_executed"))
    first = task.delay()
    expire_now(first.pk)
    maintain.expire("default")

    second = task.delay()

    assert not second.duplicate
    assert second.pk != first.pk


@pytest.mark.parametrize(("on_failure", "state"), [("continue", "ready"), ("halt", "held")])
def test_session_halts_when_a_job_expires_in_its_turn_that_says_so(
    on_failure: Any, state: str
) -> None:
    head = noop.using(session=Serial("s", on_failure=on_failure)).delay()
    after = noop.using(session="s").delay()
    expire_now(head.pk)

    maintain.expire("default")

    run_commit_hooks("default")
    assert state_of(after.pk) == state
    assert (Session.objects.get().halted_by == head.pk) is (state == "held")


def test_nothing_is_found_when_nothing_has_expired() -> None:
    noop.delay()
    noop.using(expires_at=timedelta(hours=1)).delay()

    assert find_expired("default", most=10) == []
