"""All jobs of a task that failed with one class of error are retried or cancelled together."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_tenantqueue.models import Change, Job
from django_tenantqueue.operations import failures
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.operations.failures import cancel_failed, retry_failed
from tests.factories import make_jobs, make_queue, state_of

pytestmark = pytest.mark.django_db
TASK = "app.tasks.send"
HOUR = timedelta(hours=1)


def error(name: str = "ValueError", message: str = "it failed") -> dict:
    return {"class": name, "message": message, "attempt": 1, "at": "2026-01-01T00:00:00+00:00"}


def make_failed(queue, count=1, cls="ValueError", ago=timedelta(minutes=5), **columns):
    columns = {"task": TASK, "errors": [error("Older"), error(cls)], **columns}
    return make_jobs(queue, count, state="error", finished_at=timezone.now() - ago, **columns)


def make_waiting(queue, count=1, cls="ValueError", **columns):
    columns = {"task": TASK, "errors": [error("Older"), error(cls)], "attempt": 1, **columns}
    return make_jobs(queue, count, **{"state": "scheduled", **columns})


def states(ids):
    return [state_of(job_id) for job_id in ids]


def test_jobs_of_the_group_are_retried_and_no_others():
    queue = make_queue()
    mine = make_failed(queue, 3)
    others = [
        *make_failed(queue, cls="KeyError"),
        *make_failed(queue, cls="Older", errors=[error("ValueError"), error("Older")]),
        *make_failed(queue, task="app.tasks.other"),
        *make_failed(queue, ago=2 * HOUR),
        *make_jobs(queue, 1, state="cancelled", task=TASK, errors=[error()]),
    ]

    done = retry_failed(TASK, "ValueError", timezone.now() - HOUR)

    assert (len(done.ids), done.more) == (3, False)
    assert states(mine) == ["ready"] * 3
    assert set(states(others)) == {"error", "cancelled"}


def test_one_entry_names_the_group_when_the_retry_takes_several_steps(monkeypatch):
    monkeypatch.setattr(failures, "BATCH", 2)
    ids = make_failed(make_queue(), 5)

    with acting_as("ann", "admin"):
        retry_failed(TASK, "ValueError", timezone.now() - HOUR)

    entry = Change.objects.get()
    assert (entry.actor, entry.action, entry.object_label) == ("ann", "retry", TASK)
    assert (entry.object_count, entry.object_ids) == (5, sorted(ids))
    assert entry.before == {"state": "error", "error": "ValueError"}
    assert entry.after == {"retried": 5}


def test_newest_jobs_are_retried_when_there_are_more_than_one_call_takes(monkeypatch):
    monkeypatch.setattr(failures, "BATCH", 2)
    queue = make_queue()
    old = make_failed(queue, 2, ago=timedelta(minutes=30))
    new = make_failed(queue, 3)

    done = retry_failed(TASK, "ValueError", timezone.now() - HOUR, limit=3)

    assert (len(done.ids), done.more) == (3, True)
    assert (states(new), states(old)) == (["ready"] * 3, ["error"] * 2)


def test_jobs_of_other_queues_are_left_when_queues_are_named(monkeypatch):
    monkeypatch.setattr(failures, "BATCH", 2)
    mine, other = make_queue(), make_queue()
    wanted, left = make_failed(mine, 3), make_failed(other, 3)

    done = retry_failed(TASK, "ValueError", timezone.now() - HOUR, queues=[mine.pk])

    assert (len(done.ids), done.more) == (3, False)
    assert (states(wanted), states(left)) == (["ready"] * 3, ["error"] * 3)
    assert Change.objects.get().tenant == mine.tenant


def test_walk_ends_when_few_of_very_many_jobs_are_in_the_named_queues(monkeypatch):
    monkeypatch.setattr(failures, "BATCH", 2)
    monkeypatch.setattr(failures, "WALKED", 4)
    mine, other = make_queue(), make_queue()
    make_failed(mine, 1, ago=timedelta(minutes=30))
    make_failed(other, 6)

    done = retry_failed(TASK, "ValueError", timezone.now() - HOUR, queues=[mine.pk])

    assert (len(done.ids), done.more) == (0, True)
    assert not Change.objects.exists()


def test_jobs_that_wait_for_another_attempt_are_cancelled_and_no_others():
    queue = make_queue()
    mine = [*make_waiting(queue, 2), *make_waiting(queue, state="ready")]
    others = [
        *make_waiting(queue, cls="KeyError"),
        *make_waiting(queue, task="app.tasks.other"),
        *make_waiting(queue, errors=None),
    ]

    done = cancel_failed(TASK, "ValueError")

    assert (len(done.ids), done.more) == (3, False)
    assert set(states(mine)) == {"cancelled"}
    assert set(states(others)) == {"scheduled"}
    entry = Change.objects.get()
    assert (entry.action, entry.before, entry.after) == (
        "cancel",
        {"error": "ValueError"},
        {"cancelled": 3},
    )


def test_running_job_is_left_when_the_group_is_cancelled():
    (job_id,) = make_waiting(make_queue(), state="running", worker_id=1, claim_seq=1)

    assert len(cancel_failed(TASK, "ValueError").ids) == 0
    assert Job.objects.get(pk=job_id).cancel_requested_at is None


@pytest.mark.parametrize("text", ["x" * 5000, '"><script>', "a\x00b", ""])
def test_group_is_found_when_names_are_hostile(text):
    stored = text.replace("\x00", "\\x00")
    queue = make_queue()
    name = stored or "?"
    (job_id,) = make_failed(queue, task=name[:2000], cls=stored)

    assert len(retry_failed(text[:2000] or "?", text, timezone.now() - HOUR).ids) == 1
    assert state_of(job_id) == "ready"


@pytest.mark.parametrize("stored", [5, "text", {"a": 1}, [5], ["text"], [None], []])
def test_job_ends_and_is_found_when_its_errors_have_another_shape(stored):
    (job_id,) = make_failed(make_queue(), errors=stored)

    assert len(retry_failed(TASK, "?", timezone.now() - HOUR).ids) == 1
    assert state_of(job_id) == "ready"
