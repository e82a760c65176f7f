"""Workers with old and new code side by side: each job goes to the ones that can run it."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.db.models import Sum

from django_tenantqueue.exceptions import UnknownTask
from django_tenantqueue.models import Job, Worker
from django_tenantqueue.states import State
from django_tenantqueue.stored_error import class_name
from tests.testapp.tasks import noop

from .workers import Workers, wait_for_end, wait_for_state, wait_until

OLDER = "tests.process.settings_older"
NEWER = "tests.process.settings_newer"
UNKNOWN = class_name(UnknownTask)


def enqueue(name: str, count: int = 1, args: list[object] | None = None) -> list[int]:
    """Enqueue jobs of a task that this process does not have."""
    with transaction.atomic():
        ids = noop.enqueue_many([()] * count)
        Job.objects.filter(pk__in=ids).update(task=name, source_method=name)
        if args is not None:
            Job.objects.filter(pk__in=ids).update(args={"args": args, "kwargs": {}})
    return ids


def lacking(name: str) -> int:
    """Return how many workers say that they lack a task."""
    return sum(name in (row.unknown_tasks or ()) for row in Worker.objects.all())


def test_jobs_of_a_new_task_go_to_the_worker_that_has_it(workers: Workers):
    older = [workers.start(module=OLDER) for _ in range(3)]
    early = enqueue("rolled.added", 20)
    wait_until(lambda: lacking("rolled.added") == 3)
    wait_until(lambda: Job.objects.filter(pk__in=early, state=State.SCHEDULED).count() == 20)

    workers.start(module=NEWER)
    ended = wait_for_end(early, timeout=60)
    late = wait_for_end(enqueue("rolled.added", 50))

    assert {(job.state, job.result, job.attempt) for job in ended + late} == {
        (State.SUCCESS, "newer", 1)
    }
    # the old workers took none of the later ones, but for those that they had learned too late
    assert (
        Job.objects.filter(pk__in=[job.pk for job in late]).aggregate(n=Sum("claim_seq"))["n"]
        < 50 + 3 * 20
    )
    assert all(runner.process.poll() is None for runner in older)
    assert wait_for_end(noop.enqueue_many([()] * 20))[-1].state == State.SUCCESS


def test_jobs_of_the_old_signature_lose_no_attempt(workers: Workers):
    workers.start(module=NEWER)
    [job_id] = enqueue("rolled.changed", 1, [1])
    waiting = Job.objects.get(pk=job_id)
    wait_until(lambda: waiting.refresh().errors, what="it was returned")
    assert waiting.last_error is not None
    assert waiting.last_error["class"] == UNKNOWN
    assert "missing a required argument: 'unit'" in waiting.last_error["message"]

    workers.start(module=OLDER)
    ended = wait_for_end([job_id, *enqueue("rolled.changed", 20, [1])], timeout=60)

    assert {(job.state, job.result, job.attempt) for job in ended} == {
        (State.SUCCESS, "older 1", 1)
    }


def test_jobs_that_no_worker_can_run_end_in_error(workers: Workers):
    workers.start(settings={"UNKNOWN_TASK_TIMEOUT": 1}, module=NEWER)

    ids = [*enqueue("rolled.removed"), *enqueue("rolled.changed", 1, [1])]
    gone, unfit = sorted(wait_for_end(ids, timeout=90), key=lambda job: job.pk)

    for job in (gone, unfit):
        assert (job.state, job.attempt) == (State.ERROR, 1)
        assert job.last_error is not None
        assert job.last_error["class"] == UNKNOWN
    assert "no task is named 'rolled.removed' here" in gone.last_error["message"]


def test_jobs_that_no_worker_can_run_block_no_others(workers: Workers):
    enqueue("rolled.removed", 1000)
    behind = noop.delay()

    workers.start(module=NEWER)

    wait_for_state(behind, State.SUCCESS)


def test_two_sites_share_the_queues_of_a_database(workers: Workers):
    workers.start(module=OLDER)
    workers.start(module=NEWER)
    ids = {"older": [], "newer": []}
    for _ in range(10):
        ids["older"] += enqueue("rolled.removed", 5)
        ids["newer"] += enqueue("rolled.added", 5)

    for code, jobs in ids.items():
        ended = wait_for_end(jobs)
        assert {(job.state, job.result, job.attempt) for job in ended} == {(State.SUCCESS, code, 1)}
    again = wait_for_end([*enqueue("rolled.removed", 50), *enqueue("rolled.added", 50)])
    assert {job.claim_seq for job in again} == {1}


@pytest.mark.parametrize("module", [OLDER, NEWER])
def test_worker_says_what_it_lacks_before_it_meets_a_job(workers: Workers, module: str):
    lacks = "added" if module == OLDER else "removed"
    workers.start()
    enqueue("rolled.added")
    enqueue("rolled.removed")
    wait_until(lambda: lacking("rolled.added") == lacking("rolled.removed") == 1)

    runner = workers.start(module=module)

    wait_until(lambda: runner.rows()[0].unknown_tasks is not None)
    assert runner.rows()[0].unknown_tasks == [f"rolled.{lacks}"]
