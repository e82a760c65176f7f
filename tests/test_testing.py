"""run_pending(), as users' tests call it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, connections, transaction
from django.test import TestCase, TransactionTestCase

from django_tenantqueue import task
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests import sample_tasks
from tests.testapp.models import Effect, Report
from tests.testapp.tasks import async_add, echo, fail, noop, write_effect


def add_twice() -> None:
    Group.objects.create(name="twice")
    Group.objects.create(name="twice")


@task(name="tests.adds_twice", max_attempts=1)
def adds_twice(how: str = "") -> str:
    """Add a row that is there already."""
    if how == "caught":
        Group.objects.create(name="twice")
        try:
            Group.objects.create(name="twice")
        except IntegrityError:
            return "caught"
    if how == "in a block":
        with transaction.atomic():
            add_twice()
    if how == "after a hook":
        transaction.on_commit(noop.delay)
    add_twice()
    return "not reached"


@task(name="tests.adds_twice_async", max_attempts=1)
async def adds_twice_async() -> None:
    """Add a row that is there already."""
    await Group.objects.acreate(name="twice")
    await Group.objects.acreate(name="twice")


@task(name="tests.adds_twice_atomic", max_attempts=1, atomic=True)
def adds_twice_atomic() -> None:
    """Add a row that is there already."""
    add_twice()


@task(name="tests.runs_pending")
def runs_pending() -> list[str]:
    """Run the jobs that a failing one is among."""
    adds_twice.delay()
    return [job.state for job in run_pending()]


@task(name="tests.needs_a_durable_block")
def needs_a_durable_block() -> None:
    """Write in a block that must be the outermost."""
    with transaction.atomic(durable=True):
        Group.objects.create(name="durable")


@task(name="tests.leaves_a_block_open", max_attempts=1)
def leaves_a_block_open() -> None:
    """Write in a block that is never left."""
    transaction.atomic().__enter__()
    Group.objects.create(name="open")


@task(name="tests.closes_its_connections")
def closes_its_connections() -> None:
    """Close them, as tasks that run for long do before they wait."""
    connection.close()
    connections.close_all()


@task(name="tests.reads_a_report")
async def reads_a_report(report: Report) -> str:
    """Get a row, in a coroutine."""
    return report.title


class InsideATestCase(TestCase):
    """Nothing is ever committed."""

    def test_jobs_run_in_order_when_they_are_pending(self):
        late = echo.using(priority=300).delay(1)
        first = echo.using(priority=100).delay(2)
        second = echo.using(priority=100).delay(3)

        assert [job.pk for job in run_pending()] == [first.pk, second.pk, late.pk]
        assert run_pending() == []

    def test_queue_is_made_in_the_tests_transaction_when_it_is_new(self):
        job = noop.using(tenant="only-here").delay()

        assert Job.objects.get(pk=job.pk).queue.tenant == "only-here"

    def test_queue_is_made_again_when_the_one_it_knew_was_rolled_back(self):
        job = noop.using(tenant="only-here").delay()

        assert Job.objects.get(pk=job.pk).queue.tenant == "only-here"

    def test_hooks_after_commit_run_when_jobs_are_run(self):
        seen: list[str] = []
        transaction.on_commit(lambda: seen.append("ordinary"))
        transaction.on_commit(lambda: 1 / 0, robust=True)
        transaction.on_commit(lambda: noop.delay())

        assert len(run_pending()) == 1
        assert seen == ["ordinary"]

    def test_error_surfaces_when_a_hook_after_commit_fails(self):
        transaction.on_commit(lambda: 1 / 0)

        with pytest.raises(ZeroDivisionError):
            run_pending()

    def test_error_does_not_surface_when_a_task_fails(self):
        job = fail.using(max_attempts=1).delay()

        (done,) = run_pending()

        assert (done.pk, done.state) == (job.pk, "error")

    def test_repeated_job_is_returned_once_when_scheduled_ones_run_too(self):
        fail.delay()

        (done,) = run_pending(scheduled=True)

        assert (done.state, done.attempt) == ("error", 3)

    def test_scheduled_job_waits_when_only_ready_ones_are_run(self):
        noop.using(run_at=timedelta(days=10)).delay()

        assert run_pending() == []
        assert len(run_pending(scheduled=True)) == 1

    def test_coroutine_runs_when_it_is_pending(self):
        async_add.delay(1, 2)

        assert [job.result for job in run_pending()] == [3]

    def test_atomic_task_stores_its_effect_when_it_is_pending(self):
        write_effect.delay("x")

        assert [job.state for job in run_pending()] == ["success"]
        assert Effect.objects.count() == 1

    def test_next_job_runs_when_a_task_violates_a_constraint(self):
        for failing in (adds_twice.using(labels=["plain"]), adds_twice_async, adds_twice_atomic):
            with self.subTest(task=failing):
                failing.delay()
                noop.delay()

                failed, done = run_pending()

                assert (failed.state, done.state) == ("error", "success")
                assert failed.last_error["class"] == "django.db.utils.IntegrityError"
                assert not Group.objects.exists()

    def test_next_job_runs_when_the_violation_was_in_a_block_of_the_task(self):
        adds_twice.delay("in a block")
        noop.delay()

        assert [job.state for job in run_pending()] == ["error", "success"]

    def test_job_succeeds_when_its_task_catches_the_violation(self):
        adds_twice.delay("caught")
        noop.delay()

        caught, done = run_pending()

        assert (caught.result, done.state) == ("caught", "success")

    def test_hooks_of_a_task_are_dropped_when_its_writes_are_rolled_back(self):
        adds_twice.delay("after a hook")

        assert [job.state for job in run_pending()] == ["error"]

    def test_next_job_runs_when_pending_ones_are_run_in_a_task(self):
        runs_pending.delay()
        noop.delay()

        outer, *_ = run_pending()

        assert sorted(outer.result) == ["error", "success"]
        assert Job.objects.unfinished().count() == 0

    def test_durable_block_is_allowed_when_it_is_the_outermost_of_a_task(self):
        needs_a_durable_block.delay()

        assert [job.state for job in run_pending()] == ["success"]
        assert Group.objects.filter(name="durable").exists()

    def test_test_keeps_its_transaction_when_a_task_leaves_a_block_open(self):
        blocks = len(connection.atomic_blocks)
        leaves_a_block_open.delay()
        noop.delay()

        left, done = run_pending()

        assert left.last_error["class"].endswith("TransactionLeftOpen")
        assert done.state == "success"
        assert len(connection.atomic_blocks) == blocks
        assert not Group.objects.exists()

    def test_test_keeps_its_transaction_when_a_task_closes_its_connections(self):
        closes_its_connections.delay()
        noop.delay()

        assert [job.state for job in run_pending()] == ["success", "success"]

    def test_model_instance_is_loaded_when_a_coroutine_takes_one(self):
        reads_a_report.delay(Report.objects.create(title="of this test"))

        assert [job.result for job in run_pending()] == ["of this test"]

    def test_next_job_runs_when_a_robust_hook_violates_a_constraint(self):
        transaction.on_commit(add_twice, robust=True)
        noop.delay()

        assert [job.state for job in run_pending()] == ["success"]

    def test_transaction_is_usable_when_a_hook_violates_a_constraint(self):
        transaction.on_commit(add_twice)

        with pytest.raises(IntegrityError):
            run_commit_hooks("default")

        assert not Group.objects.exists()

    def test_slots_and_pauses_hold_when_jobs_are_run(self):
        job = noop.using(tenant="acme").delay()
        job.queue.paused = True
        job.queue.save()

        assert run_pending() == []

    def test_end_is_told_when_jobs_enqueue_each_other_for_ever(self):
        sample_tasks.enqueues_itself.delay()

        with pytest.raises(RuntimeError, match="has run 20 jobs and there are still more"):
            run_pending(limit=20)

    def test_name_is_told_when_a_task_is_unknown(self):
        job = noop.delay()
        Job.objects.filter(pk=job.pk).update(source_method="tests.gone", task="tests.gone")

        with pytest.raises(
            LookupError, match=r"\(tests.gone\) cannot run here: no task is named 'tests.gone'"
        ):
            run_pending()


class WithDataOfItsClass(TestCase):
    """Jobs run for all tests of the class."""

    @classmethod
    def setUpTestData(cls):
        adds_twice.delay()
        noop.delay()
        cls.states = [job.state for job in run_pending()]

    def test_next_job_runs_when_a_task_violates_a_constraint(self):
        assert self.states == ["error", "success"]
        assert Job.objects.count() == 2


@pytest.mark.django_db
class TestWithTheFixtureOfPytest:
    def test_next_job_runs_when_a_task_violates_a_constraint(self, run_jobs):
        adds_twice.delay()
        noop.delay()

        assert [job.state for job in run_jobs()] == ["error", "success"]


@pytest.mark.django_db
class TestWithASecondDatabase:
    """Another connection of the test, in its own transaction."""

    @pytest.fixture
    def other(self):
        wrapper = connections["other"] = connection.copy("other")
        wrapper.connect()
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(connections.settings, "other", connections.settings["default"])
            with transaction.atomic(using="other"):
                yield wrapper
                transaction.set_rollback(True, using="other")
            wrapper.close()
        del connections["other"]

    def test_its_transaction_is_usable_when_a_task_breaks_it(self, other, run_jobs):
        def add_twice_there() -> None:
            for _ in range(2):
                Group.objects.using("other").create(name="twice")

        transaction.on_commit(add_twice_there, robust=True)
        noop.delay()

        assert [job.state for job in run_jobs()] == ["success"]
        assert not Group.objects.using("other").exists()

    def test_its_hooks_run_when_jobs_are_run(self, other, run_jobs):
        transaction.on_commit(noop.delay, using="other")

        assert [job.state for job in run_jobs()] == ["success"]


class OutsideATransaction(TransactionTestCase):
    """All is committed."""

    def test_jobs_run_when_they_are_committed(self):
        job = noop.using(tenant="acme").delay()

        assert [done.pk for done in run_pending()] == [job.pk]

    def test_effect_is_undone_when_an_atomic_task_fails(self):
        write_effect.delay("x", error=True)

        assert [job.state for job in run_pending()] == ["error"]
        assert not Effect.objects.exists()

    def test_next_job_runs_when_a_task_violates_a_constraint(self):
        adds_twice.delay()
        noop.delay()

        assert [job.state for job in run_pending()] == ["error", "success"]
        assert Group.objects.count() == 1  # each statement was committed

    def test_next_job_runs_when_a_task_leaves_a_block_open(self):
        leaves_a_block_open.delay()
        noop.delay()

        assert [job.state for job in run_pending()] == ["error", "success"]
        assert not Group.objects.exists()
