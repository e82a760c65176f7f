"""run_pending(), as users' tests call it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.test import TestCase, TransactionTestCase

from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending
from tests import sample_tasks
from tests.testapp.models import Effect
from tests.testapp.tasks import async_add, echo, fail, noop, write_effect


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

    def test_slots_and_pauses_hold_when_jobs_are_run(self):
        job = noop.using(tenant="acme").delay()
        job.queue.paused = True
        job.queue.save()

        assert run_pending() == []

    def test_end_is_told_when_jobs_enqueue_each_other_for_ever(self):
        sample_tasks.enqueues_itself.delay()

        with pytest.raises(RuntimeError, match="has run 20 jobs and there are still more"):
            run_pending(most=20)

    def test_name_is_told_when_a_task_is_unknown(self):
        job = noop.delay()
        Job.objects.filter(pk=job.pk).update(source_method="tests.gone", name="tests.gone")

        with pytest.raises(LookupError, match=r"names 'tests.gone', which is not known here"):
            run_pending()


class OutsideATransaction(TransactionTestCase):
    """All is committed."""

    def test_jobs_run_when_they_are_committed(self):
        job = noop.using(tenant="acme").delay()

        assert [done.pk for done in run_pending()] == [job.pk]

    def test_effect_is_undone_when_an_atomic_task_fails(self):
        write_effect.delay("x", error=True)

        assert [job.state for job in run_pending()] == ["error"]
        assert not Effect.objects.exists()
