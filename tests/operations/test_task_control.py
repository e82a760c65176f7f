"""Tasks that are paused or capped: what is held, what goes on, and whose turn it is."""

from __future__ import annotations

from collections import Counter

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction

from django_tenantqueue import ConcurrentJobMonitor, Unique, delayed
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.gate_keys import JobGates
from django_tenantqueue.models import Job, Session, TaskControl, TenantQueue
from django_tenantqueue.operations import control, task_gate
from django_tenantqueue.operations.claim import Claimer
from django_tenantqueue.operations.gates import Sweep, keys_of, release
from django_tenantqueue.operations.monitor_control import cancel_monitor
from django_tenantqueue.operations.task_control import delete_controls, tune_control
from django_tenantqueue.queries.claim import ClaimedJob
from django_tenantqueue.queries.finish import Finished
from django_tenantqueue.queries.round_trip import exchange_in_transaction
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import (
    cap_task,
    make_job,
    make_jobs,
    make_queue,
    make_worker,
    pause_task,
    resume_task,
)
from tests.testapp.models import Report
from tests.testapp.tasks import add, fail_until, noop

pytestmark = pytest.mark.django_db
NOOP = "tests.testapp.tasks.noop"
KEYED = Unique("while_executing", key="the same")


@pytest.fixture(autouse=True)
def forget_places():
    task_gate._places.clear()


def states(jobs: list[Job]) -> list[str]:
    """Return the states of jobs, once what was left for after the commit is done."""
    run_commit_hooks("default")
    return [job.refresh().state for job in jobs]


def hold(queue: TenantQueue | int, count: int, **columns: object) -> list[int]:
    """Make jobs that stand in the line of noop."""
    values = {"state": "held", "held_by": "task", "session_key": None}
    return make_jobs(queue, count, **{**values, **columns})


def capped(num_slots: int | None = None, **columns: object) -> TaskControl:
    """Cap noop, and count what runs."""
    made = cap_task(NOOP, num_slots)
    for name, value in columns.items():
        setattr(made, name, value)
    made.save()
    run_commit_hooks("default")
    return made


# pausing


def test_jobs_of_a_paused_task_are_held_and_others_run() -> None:
    pause_task(NOOP)
    paused = [noop.using(tenant=tenant).delay() for tenant in ("acme", "zeta")]
    others = [add.using(tenant=tenant).delay(1) for tenant in ("acme", "zeta")]

    ended = run_pending()

    assert {job.pk for job in ended} == {job.pk for job in others}
    assert states(paused) == ["held", "held"]
    assert {(job.held_by, job.attempt, job.worker_id) for job in paused} == {("task", 0, None)}


def test_held_jobs_are_not_claimed_again() -> None:
    pause_task(NOOP)
    job = noop.delay()
    run_pending()
    seq = job.refresh().claim_seq

    run_pending()
    Sweep().step("default")

    assert job.refresh().claim_seq == seq == 0


def test_jobs_run_when_the_task_is_resumed() -> None:
    pause_task(NOOP)
    jobs = [noop.delay() for _ in range(3)]
    run_pending()

    assert resume_task(NOOP) is not None

    assert states(jobs) == ["ready"] * 3
    assert len(run_pending()) == 3
    assert Job.objects.get(pk=jobs[0].pk).attempt == 1


def test_nothing_is_said_to_resume_when_the_task_was_not_paused() -> None:
    assert resume_task(NOOP) is None


def test_method_is_paused_by_its_name() -> None:
    report = Report.objects.create(title="t")
    job = delayed(report).execute()
    pause_task(job.task)

    run_pending()

    assert states([job]) == ["held"]


def test_everything_goes_when_the_control_is_deleted() -> None:
    paused = pause_task(NOOP)
    jobs = [noop.delay() for _ in range(3)]
    run_pending()

    assert delete_controls([paused.pk]) == [paused.pk]

    assert states(jobs) == ["ready"] * 3
    assert len(run_pending()) == 3


def test_lines_are_opened_in_steps_when_nothing_holds_the_task(monkeypatch) -> None:
    monkeypatch.setattr(task_gate, "BATCH", 4)
    ids = hold(make_queue(), 10)

    assert [task_gate.sweep("default", "default").ready for _ in range(4)] == [4, 4, 2, 0]

    assert set(Job.objects.filter(pk__in=ids).values_list("state", flat=True)) == {"ready"}


def test_job_of_a_session_keeps_its_turn_when_its_task_is_paused() -> None:
    pause_task(NOOP)
    first = noop.using(session="s").delay()
    second = add.using(session="s").delay(1)

    assert run_pending() == []
    release("default", keys_of([JobGates(session=str(first.session_key))]))
    Sweep().step("default")
    assert states([first, second]) == ["held", "held"]
    assert [first.held_by, second.held_by] == ["task", "session"]
    resume_task(NOOP)
    assert [job.pk for job in run_pending()] == [first.pk, second.pk]


def test_job_counts_nowhere_else_when_its_task_is_paused(settings) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "DEFAULT_USER_SLOTS": 1}
    pause_task(NOOP)
    paused = [noop.using(limit_user="7", unique=KEYED).delay() for _ in range(3)]
    other = add.using(limit_user="7", unique=KEYED).delay(1)

    assert [job.pk for job in run_pending()] == [other.pk]

    assert states(paused) == ["held"] * 3
    assert {job.held_by for job in paused} == {"task"}


def test_jobs_come_back_to_their_gates_in_order_when_the_task_is_resumed(settings) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "DEFAULT_USER_SLOTS": 1}
    pause_task(NOOP)
    jobs = [noop.using(limit_user="7").delay() for _ in range(3)]
    run_pending()

    resume_task(NOOP)

    assert states(jobs) == ["ready", "held", "held"]
    assert [job.held_by for job in jobs] == [None, "limit_user", "limit_user"]
    assert [job.pk for job in run_pending()] == [job.pk for job in jobs]


def test_monitor_goes_on_with_its_other_details_when_a_task_is_paused() -> None:
    pause_task(NOOP)
    details = [noop.call() if n % 2 else add.call(n) for n in range(20)]
    monitor = ConcurrentJobMonitor.objects.start("two kinds", details, parallel=4)

    ended = run_pending()

    assert Counter(job.task for job in ended) == {add.name: 10}
    progress = monitor.progress()
    assert (progress.status, progress.aside, progress.left) == ("running", 10, 10)
    resume_task(NOOP)
    assert len(run_pending()) == 11  # and the callback
    assert monitor.progress().left == 0


def test_monitor_of_a_paused_task_is_cancelled_with_its_details() -> None:
    pause_task(NOOP)
    details = [noop.call() for _ in range(6)]
    monitor = ConcurrentJobMonitor.objects.start("one kind", details, parallel=2)
    run_pending()

    assert cancel_monitor(monitor.pk) == 6

    monitor.refresh_from_db()
    assert monitor.progress().status == "cancelled"


def test_more_urgent_job_of_the_session_swaps_places_with_one_that_its_task_holds() -> None:
    pause_task(NOOP)
    usual = noop.using(session="s").delay()
    run_pending()

    urgent = add.using(session="s", priority=1).delay(1)

    assert states([usual, urgent]) == ["held", "ready"]
    assert usual.held_by == "session"
    assert Session.objects.count() == 1


def test_cancelled_in_the_line() -> None:
    pause_task(NOOP)
    job = noop.delay()
    run_pending()

    assert control.cancel([job.pk]) == ([job.pk], [])


def test_retry_comes_to_the_gate_again() -> None:
    job = fail_until.delay(2, 3600.0)
    run_pending()
    pause_task(fail_until.name)

    assert run_pending(scheduled=True) == []

    assert states([job]) == ["held"]
    assert job.attempt == 1


# caps


def test_as_many_start_as_the_cap_says(claim) -> None:
    capped(2)
    jobs = [noop.using(tenant=f"t{n}").delay() for n in range(4)]

    granted = claim()

    assert len(granted) == 2
    assert sorted(states(jobs)) == ["held", "held", "queued", "queued"]


def test_next_one_goes_when_one_has_ended(claim) -> None:
    capped(1)
    jobs = [noop.using(tenant=f"t{n}").delay() for n in range(3)]
    (first,) = claim()

    claim.finish(first)

    assert Counter(states(jobs)) == {"success": 1, "ready": 1, "held": 1}
    assert len(claim()) == 1


def test_run_pending_runs_what_is_capped() -> None:
    cap_task(NOOP, 1)
    jobs = [noop.using(tenant=f"t{n}").delay() for n in range(3)]

    assert len(run_pending()) == 3
    assert states(jobs) == ["success"] * 3


def test_nothing_starts_when_the_cap_is_none_at_all() -> None:
    cap_task(NOOP, 0)
    noop.delay()

    assert run_pending() == []


def test_running_job_counts_when_it_was_claimed_before_the_cap(claim) -> None:
    noop.delay()
    (running,) = claim()
    capped(1)
    jobs = [noop.delay()]

    assert claim() == []
    claim.finish(running)
    assert len(claim()) == 1
    assert states(jobs) == ["queued"]


def test_new_cap_starts_jobs_at_once(claim) -> None:
    cap_task(NOOP, 1)
    noop.delay()

    assert len(claim()) == 1


def test_running_jobs_count_when_the_task_had_no_cap_in_between(claim) -> None:
    capped(3)
    cap_task(NOOP, None)
    noop.delay()
    assert len(claim()) == 1
    capped(1)
    noop.delay()

    assert claim() == []


def test_more_go_when_the_cap_is_raised(claim) -> None:
    made = capped(1)
    jobs = [noop.using(tenant=f"t{n}").delay() for n in range(5)]
    claim()

    tune_control(made.pk, num_slots=3)

    assert Counter(states(jobs)) == {"queued": 1, "ready": 2, "held": 2}


def test_lowered_cap_drains(claim) -> None:
    made = capped(3)
    jobs = [noop.using(tenant=f"t{n}").delay() for n in range(5)]
    first, second, third = claim()
    tune_control(made.pk, num_slots=1)

    claim.finish(first)
    claim.finish(second)
    assert Counter(states(jobs)) == {"success": 2, "queued": 1, "held": 2}
    claim.finish(third)
    assert Counter(states(jobs)) == {"success": 3, "ready": 1, "held": 1}


# whose turn it is


def released(count: int = 1) -> list[int]:
    """Return the queues of the jobs that a release of so many slots makes ready."""
    before = set(Job.objects.filter(state="ready").values_list("pk", flat=True))
    TaskControl.objects.update(num_slots=count)
    task_gate.release_tasks("default", [NOOP], waits=False)
    after = Job.objects.filter(state="ready").exclude(pk__in=before).order_by("pk")
    return list(after.values_list("queue_id", flat=True))


def test_queues_take_turns() -> None:
    capped(1)
    big, small = make_queue(), make_queue()
    hold(big, 50)
    hold(small, 2)

    turns = [queue_id for _ in range(4) for queue_id in released()]

    assert Counter(turns) == {big.pk: 2, small.pk: 2}
    assert turns[0] != turns[1]


def test_line_of_one_queue_fills_all_the_room() -> None:
    capped(1)
    queue = make_queue(num_slots=100)
    hold(queue, 50)

    assert released(7) == [queue.pk] * 7


def test_lower_priority_goes_first() -> None:
    capped(1)
    usual, urgent = make_queue(), make_queue()
    hold(usual, 3)
    hold(urgent, 2, priority=10)

    assert sorted(released(3)) == sorted([urgent.pk, urgent.pk, usual.pk])


def test_paused_queue_is_passed_over() -> None:
    capped(1)
    hold(make_queue(paused=True), 5, priority=1)
    free = make_queue()
    hold(free, 1)

    assert released() == [free.pk]


def test_queue_is_passed_over_when_nobody_takes_what_is_ready() -> None:
    capped(1)
    stuck, free = make_queue(), make_queue()
    hold(stuck, 5, priority=1)
    hold(free, 2)
    assert released() == [stuck.pk]
    Job.objects.filter(state="ready").update(task_at="2020-01-01T00:00:00Z")

    assert task_gate.release_tasks("default", [NOOP]).ready == 1

    assert Job.objects.filter(state="ready", queue=free).count() == 1


def test_job_that_is_ready_counts_for_a_while() -> None:
    capped(1)
    hold(make_queue(), 5)
    assert task_gate.release_tasks("default", [NOOP]).ready == 1

    assert task_gate.release_tasks("default", [NOOP]).ready == 0


def test_walk_goes_on_when_it_was_cut(monkeypatch) -> None:
    monkeypatch.setattr(task_gate, "MOST_QUEUES", 5)
    capped(1)
    for _ in range(20):
        hold(make_queue(paused=True), 1)
    free = make_queue()
    hold(free, 1, priority=300)

    done = [task_gate.release_tasks("default", [NOOP]).ready for _ in range(8)]

    assert sum(done) == 1
    assert Job.objects.get(state="ready").queue_id == free.pk


# what is wrong is said


@pytest.mark.parametrize("name", ["", " "])
def test_name_is_refused_when_it_is_none(name) -> None:
    with pytest.raises(InvalidOption, match="not the name of a task"):
        pause_task(name)


def test_unknown_name_is_refused_with_what_was_meant() -> None:
    with pytest.raises(InvalidOption, match=r"Did you mean 'tests\.testapp\.tasks\.noop'"):
        pause_task("tests.testapp.tasks.nop")
    with pytest.raises(InvalidOption, match="allow_unknown=True"):
        cap_task("elsewhere", 1)
    assert not TaskControl.objects.exists()


def test_unknown_name_is_taken_when_it_may_be_unknown() -> None:
    assert pause_task("elsewhere", allow_unknown=True).paused
    assert cap_task("elsewhere", 3).num_slots == 3


def test_name_is_known_when_a_job_of_it_has_ended() -> None:
    make_job(state="success", task="of.old")

    assert pause_task("of.old").paused


@pytest.mark.parametrize("num_slots", [-1, 1_000_001, "many"])
def test_bad_cap_is_refused(num_slots) -> None:
    with pytest.raises(ValidationError):
        cap_task(NOOP, num_slots)
    assert not TaskControl.objects.exists()


def test_other_columns_cannot_be_tuned() -> None:
    made = cap_task(NOOP, 1)
    with pytest.raises(InvalidOption, match="'name' cannot be tuned"):
        tune_control(made.pk, name="x")


@pytest.fixture
def claim():
    """Return what claims all that is ready and takes slots of tasks, as a worker does."""
    return FakeClaims(make_worker().pk)


class FakeClaims:
    """A worker in this transaction."""

    def __init__(self, worker_id: int) -> None:
        self.worker_id = worker_id

    def __call__(self) -> list[ClaimedJob]:
        """Claim; return the claims that may start."""
        run_commit_hooks("default")
        request = Claimer(self.worker_id).request(50, 0)
        with transaction.atomic():
            jobs = exchange_in_transaction("default", self.worker_id, request=request).jobs
        held = [job for job in jobs if job.is_controlled]
        taken = task_gate.take("default", self.worker_id, held)
        return [*(job for job in jobs if not job.is_controlled), *taken.granted]

    def finish(self, job: ClaimedJob) -> None:
        """End a run and let others through."""
        done = [Finished(job.id, job.claim_seq, "success", 0.0)]
        assert exchange_in_transaction("default", self.worker_id, finished=done).finished
        if job.gates:
            release("default", keys_of([JobGates.read(job.gates)]))


def test_task_itself_names_what_is_controlled():
    assert pause_task(noop).task == noop.name
    assert resume_task(noop).paused is False
    assert cap_task(noop, 3).num_slots == 3
