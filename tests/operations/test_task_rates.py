"""Rates of tasks: what starts, what is held, in which order, and how edits act."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from django_tenantqueue import task
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import Job, TaskControl, TaskRate
from django_tenantqueue.operations.control import tune_queue
from django_tenantqueue.operations.declared import add_rates
from django_tenantqueue.operations.gates import Sweep
from django_tenantqueue.operations.task_control import delete_controls, rate_task, tune_control
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import cap_task, make_jobs, make_queue, pause_task, resume_task
from tests.testapp.tasks import noop

from .test_task_control import FakeClaims, claim, forget_places, states

__all__ = ["claim", "forget_places"]

pytestmark = pytest.mark.django_db
NOOP = noop.name
NEVER = 0.001
"""A rate that brings nothing while a test runs."""


def rated(rate: float | None = NEVER, burst: int | None = 1) -> TaskControl:
    made = rate_task(NOOP, rate, burst)
    run_commit_hooks("default")
    return made


def let_pass(seconds: float) -> None:
    """Let the starts of noop be older by this many seconds."""
    stored = TaskRate.objects.get()
    TaskRate.objects.update(as_of=stored.as_of - timedelta(seconds=seconds))


def started(claim: FakeClaims) -> list[int]:
    """Release what is due, claim, and return the jobs that may start."""
    Sweep().step("default")
    return [job.id for job in claim()]


@pytest.mark.parametrize(
    ("rate", "burst", "starts"), [(NEVER, 3, 3), (NEVER, None, 1), (2.5, None, 3), (0.25, 1, 1)]
)
def test_burst_starts_at_once_and_the_rest_is_held(claim, rate, burst, starts) -> None:
    assert rated(rate, burst).burst_size == starts
    jobs = [noop.using(tenant=f"t{n}").delay() for n in range(6)]

    assert len(claim()) == starts

    assert Counter(states(jobs)) == {"queued": starts, "held": 6 - starts}
    assert {job.attempt for job in jobs if job.state == "held"} == {0}


@pytest.mark.parametrize(
    ("seconds", "starts"),
    [(0, 0), (900, 0), (1001, 1), (2900, 2), (3001, 3), (36000, 3), (-3600, 3)],
)
def test_rate_brings_starts_back_when_time_passes_or_the_clock_was_set_back(
    claim, seconds, starts
) -> None:
    rated(burst=3)
    make_jobs(make_queue(num_slots=50), 10)
    assert len(claim()) == 3

    let_pass(seconds)

    assert len(started(claim)) == starts


def test_fraction_of_a_start_is_kept_when_another_is_taken(claim) -> None:
    rated(burst=3)
    make_jobs(make_queue(num_slots=50), 10)
    claim()

    for seconds, starts in ((1600, 1), (500, 1), (500, 0), (500, 1)):
        let_pass(seconds)
        assert len(started(claim)) == starts


def test_lowered_burst_is_not_handed_out_again_when_it_is_raised(claim) -> None:
    made = rated(burst=20)
    make_jobs(make_queue(num_slots=100), 60)
    assert len(claim()) == 20
    tune_control(made.pk, burst=1)
    let_pass(1001)
    assert len(started(claim)) == 1

    tune_control(made.pk, burst=20)

    assert started(claim) == []


def test_held_jobs_start_by_priority_and_id_and_before_new_ones(claim) -> None:
    rated()
    queue = make_queue(num_slots=50)
    usual = make_jobs(queue, 3)
    assert [job.id for job in claim()] == usual[:1]
    (urgent,) = make_jobs(queue, 1, priority=10)
    claim()
    newest = make_jobs(queue, 2)

    order = []
    for _ in range(5):
        let_pass(1001)
        order += [job.id for job in claim()] or started(claim)

    assert order == [urgent, *usual[1:], *newest]


def test_new_job_waits_behind_the_line_of_its_queue_when_a_start_is_free(claim) -> None:
    """Without a release first: new jobs would take every start, and the line would never end."""
    rated()
    queue = make_queue(num_slots=50)
    first, second = make_jobs(queue, 2)
    assert [job.id for job in claim()] == [first]
    let_pass(1001)
    (new,) = make_jobs(queue, 1)

    assert claim() == []

    assert started(claim) == [second]
    assert Job.objects.get(pk=new).held_by == "task"


def test_queues_take_turns_at_the_starts(claim) -> None:
    rated()
    big, small = make_queue(num_slots=50), make_queue(num_slots=50)
    make_jobs(big, 20)
    make_jobs(small, 5)
    claim()
    queues = []
    for _ in range(4):
        let_pass(1001)
        queues += Job.objects.filter(pk__in=started(claim)).values_list("queue_id", flat=True)

    assert Counter(queues) == {big.pk: 2, small.pk: 2}


def test_backlog_takes_no_slot_and_others_of_its_queue_start(claim) -> None:
    rated()
    queue = make_queue(num_slots=2)
    make_jobs(queue, 50)
    others = make_jobs(queue, 3, task="other")

    seen = [job.id for _ in range(4) for job in claim() if job.task == "other"]

    assert seen == others[:1]  # the other slot runs the one that may start


def test_start_stays_spent_when_the_job_has_ended(claim) -> None:
    rated()
    make_jobs(make_queue(num_slots=50), 1)
    (job,) = claim()
    claim.finish(job)
    make_jobs(make_queue(num_slots=50), 1)

    assert started(claim) == []


def test_rate_of_the_queue_gets_the_starts_of_held_jobs_back(claim) -> None:
    rated()
    queue = make_queue(num_slots=50, max_per_second=NEVER, burst=5)
    make_jobs(queue, 5)
    assert len(claim()) == 1
    make_jobs(queue, 6, task="other")

    assert len(claim()) == 4


def test_both_hold_when_a_task_has_a_cap_and_a_rate(claim) -> None:
    made = rated(burst=3)
    cap_task(NOOP, 2)
    run_commit_hooks("default")
    make_jobs(make_queue(num_slots=50), 10)

    first, second = claim()  # the cap
    claim.finish(first)
    assert len(claim()) == 1  # the last start
    claim.finish(second)
    assert started(claim) == []
    tune_control(made.pk, max_per_second=None)
    assert len(started(claim)) == 1  # the cap again


def test_edit_from_none_to_a_rate_and_back_acts_at_once(claim) -> None:
    made = cap_task(NOOP, None)
    queue = make_queue(num_slots=50)
    make_jobs(queue, 3)
    assert len(claim()) == 3

    tune_control(made.pk, max_per_second=5.0, burst=2)
    make_jobs(queue, 6)
    assert len(claim()) == 2
    assert Job.objects.filter(held_by="task").count() == 4

    tune_control(made.pk, max_per_second=None, burst=None)
    assert len(claim()) == 4


def test_raised_rate_counts_what_was_owed_at_the_new_speed(claim) -> None:
    made = rated()
    make_jobs(make_queue(num_slots=50), 4)
    claim()
    let_pass(0.3)

    tune_control(made.pk, max_per_second=10.0)

    assert len(started(claim)) == 1


def test_everything_goes_when_the_control_is_deleted(claim) -> None:
    made = rated()
    make_jobs(make_queue(num_slots=50), 4)
    claim()

    delete_controls([made.pk])

    assert len(claim()) == 3
    assert not TaskRate.objects.exists()


def test_paused_task_starts_nothing_and_its_rate_holds_when_it_is_resumed(claim) -> None:
    rated(burst=2)
    make_jobs(make_queue(num_slots=50), 4)
    pause_task(NOOP)
    assert started(claim) == []

    resume_task(NOOP)

    assert len(started(claim)) == 2


def test_paused_queue_keeps_no_start_from_others(claim) -> None:
    rated()
    stuck, free = make_queue(num_slots=50), make_queue(num_slots=50)
    make_jobs(stuck, 2)
    claim()
    tune_queue(stuck.pk, paused=True)
    (job,) = make_jobs(free, 1)
    let_pass(1001)

    assert started(claim) == [job]


def test_run_pending_applies_the_rate() -> None:
    rated(burst=2)
    jobs = [noop.delay() for _ in range(5)]

    assert len(run_pending()) == 2
    assert Counter(states(jobs)) == {"success": 2, "held": 3}


def test_start_is_counted_with_the_time_in_the_row(claim) -> None:
    rated()
    make_jobs(make_queue(num_slots=50), 1)

    (job,) = claim()

    assert Job.objects.get(pk=job.id).queued_at == TaskRate.objects.get().as_of


def test_nothing_is_written_when_a_task_has_no_rate(claim) -> None:
    cap_task(NOOP, 5)
    make_jobs(make_queue(), 3)

    assert claim()
    assert not TaskRate.objects.exists()


@pytest.mark.parametrize(
    ("rate", "burst"), [(0, None), (-1, None), (1_000_001, None), ("x", None), (5, 0), (5, "x")]
)
def test_bad_rate_is_refused(rate, burst) -> None:
    with pytest.raises(ValidationError):
        rate_task(NOOP, rate, burst)
    assert not TaskControl.objects.exists()


# rates of the code


def declare(**rate: Any) -> None:
    @task(name="tests.slow", **rate)
    def slow() -> None:
        """Do nothing."""


@pytest.mark.usefixtures("own_tasks")
def test_rate_of_the_code_gets_a_control_and_operators_keep_it() -> None:
    declare(max_per_second=5, burst=2)

    assert add_rates("default") == ["tests.slow"]

    made = TaskControl.objects.get()
    assert (made.task, made.max_per_second, made.burst) == ("tests.slow", 5.0, 2)
    tune_control(made.pk, max_per_second=None)
    assert add_rates("default") == []
    made.refresh_from_db()
    assert made.max_per_second is None


@pytest.mark.usefixtures("own_tasks")
@pytest.mark.parametrize(
    ("rate", "told"),
    [
        ({"max_per_second": 0}, "max_per_second=0: it must be a number from 0.0001"),
        ({"max_per_second": True}, "max_per_second=True"),
        ({"max_per_second": "5"}, "max_per_second='5'"),
        ({"max_per_second": 5, "burst": 0}, "burst=0: it must be an int from 1"),
        ({"burst": 5}, "burst=5 needs max_per_second"),
        ({"rate_limit": "5/s"}, "max_per_second=0.1, burst=6 of @task is one rate"),
    ],
)
def test_rate_of_the_code_is_refused_when_it_is_wrong(rate: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        declare(**rate)
