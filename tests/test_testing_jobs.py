"""What users' tests assert of jobs, and the clock that they set."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from django.test import TestCase, TransactionTestCase
from django.utils import timezone

from django_tenantqueue import Serial, Unique, delayed, task
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.testing import (
    assert_enqueued,
    captured_jobs,
    eager,
    enqueued_jobs,
    refute_enqueued,
    run_pending,
    travel,
)
from tests.factories import make_job
from tests.testapp.models import Report
from tests.testapp.tasks import add, echo, fail, noop

HOUR = timedelta(hours=1)


@task(name="tests.sign_in", secret=["word"])
def sign_in(user, word="none", **more):
    """Take a secret."""


@task
def bill(created_by):
    """Have a parameter that is named like an option."""


def message_of(function, *args, **given) -> str:
    with pytest.raises(AssertionError) as caught:
        function(*args, **given)
    return str(caught.value)


@pytest.mark.django_db
class TestAssertEnqueued:
    def test_job_is_returned_when_its_arguments_are_those_of_the_call(self):
        add.delay(1, 2)
        job = add.delay(3, second=4)

        for args, given in (((3, 4), {}), ((3,), {"second": 4}), ((), {"first": 3, "second": 4})):
            assert assert_enqueued(add, *args, **given) == job

    def test_argument_may_be_anything_when_it_is_left_out(self):
        jobs = [add.delay(1, 2), add.delay(1, 3)]

        assert enqueued_jobs(add) == enqueued_jobs(add, 1) == jobs
        assert enqueued_jobs(add, second=3) == jobs[1:]

    def test_default_counts_when_the_call_left_the_argument_out(self):
        add.delay(1)

        assert_enqueued(add, 1, second=0)
        refute_enqueued(add, 1, second=1)

    def test_argument_is_compared_as_it_is_stored_when_json_has_no_such_type(self):
        report = Report.objects.create()
        echo.delay([date(2027, 1, 1), report])

        assert_enqueued(echo, (date(2027, 1, 1), report))
        refute_enqueued(echo, [date(2027, 1, 2), report])

    def test_further_keywords_are_compared_one_by_one_when_the_task_takes_any(self):
        sign_in.delay("ann", colour="red", size=3)

        assert_enqueued(sign_in, size=3)
        refute_enqueued(sign_in, size=4)

    def test_parameter_comes_before_the_option_of_the_same_name(self):
        bill.using(created_by="7").delay("ann")

        assert_enqueued(bill, created_by="ann")
        refute_enqueued(bill, created_by="7")

    def test_method_matches_when_it_is_enqueued_for_the_same_instance(self):
        report, other = Report.objects.create(), Report.objects.create()
        delayed(report, tenant="acme").execute("pdf")

        assert_enqueued(report.execute, "pdf", tenant="acme")
        refute_enqueued(report.execute, "csv")
        refute_enqueued(other.execute)

    def test_name_is_as_good_as_the_task(self):
        add.delay(1)

        assert_enqueued(add.name, 1)

    @pytest.mark.parametrize(
        ("option", "value", "other"),
        [
            ("tenant", "acme", "beta"),
            ("queue", "reports", "mail"),
            ("priority", 5, 6),
            ("max_attempts", 7, 8),
            ("labels", ("a", "b"), ("a",)),
            ("created_by", "ann", "bob"),
            ("session", "a/b", "b"),
            ("limit_user", 7, 8),
            ("timeout", HOUR, 60),
            ("hard_timeout", 60, 61),
            ("session", Serial("s", on_failure="halt"), "s"),
            ("session", Serial("s"), Serial("s", on_wait="skip")),
            ("unique", Unique("until_executed"), Unique("until_executing")),
            ("run_at", HOUR, 2 * HOUR),
            ("run_at", datetime(2099, 1, 1, tzinfo=UTC), datetime(2099, 1, 2, tzinfo=UTC)),
            ("expires_at", 3600, 7200),
        ],
    )
    def test_option_is_compared(self, option, value, other):
        noop.using(**{option: value}).delay()

        assert_enqueued(noop, **{option: value})
        assert f"{option} is " in message_of(assert_enqueued, noop, **{option: other})

    def test_option_may_be_asked_to_be_absent(self):
        noop.delay()

        assert_enqueued(noop, session=None, expires_at=None, run_at=timedelta(0))
        refute_enqueued(noop, labels=["a"], expires_at=60)

    def test_ended_job_does_not_match(self):
        noop.delay()
        run_pending()

        refute_enqueued(noop)
        assert "it has ended (success)" in message_of(assert_enqueued, noop)

    def test_near_misses_are_listed_nearest_first(self):
        far = add.using(tenant="acme", queue="x").delay(7, 8)
        near = add.using(tenant="acme").delay(1, second=3)
        noop.delay()
        noop.delay()

        assert message_of(assert_enqueued, add, 1, 2, queue="default").splitlines() == [
            "No job matches tests.testapp.tasks.add(1, 2) with queue='default'.",
            f"  #{near.pk} tests.testapp.tasks.add(1, second=3), 'acme' / 'default': second is 3",
            f"  #{far.pk} {add.name}(7, 8), 'acme' / 'x': first is 7; second is 8; queue is 'x'",
            "Other jobs: tests.testapp.tasks.noop × 2.",
        ]

    def test_message_stays_short_when_there_are_many_jobs(self):
        add.enqueue_many(range(30))

        assert message_of(assert_enqueued, add, 99).splitlines()[-1] == "  and 10 more of it"
        assert len(message_of(refute_enqueued, add).splitlines()) == 21

    def test_message_says_so_when_there_are_no_jobs(self):
        assert "There are no jobs." in message_of(assert_enqueued, noop)

    def test_secret_is_masked_in_messages(self):
        sign_in.delay("ann", word="hush")

        assert "hush" not in message_of(assert_enqueued, sign_in, "bob", word="x")
        assert "hush" not in message_of(refute_enqueued, sign_in)

    def test_hooks_are_counted_when_they_have_not_run(self):
        transaction.on_commit(lambda: noop.delay())
        add.delay(1)

        assert "that have not run: 1. run_commit_hooks('default')" in message_of(
            assert_enqueued, noop
        )

    def test_matching_jobs_are_listed_when_there_should_be_none(self):
        job = add.delay(1)

        assert message_of(refute_enqueued, add).splitlines() == [
            "1 jobs match tests.testapp.tasks.add(…):",
            f"  #{job.pk} tests.testapp.tasks.add(1), '' / 'default'",
        ]

    def test_wrong_argument_or_option_is_an_error(self):
        with pytest.raises(TypeError, match=r"tasks\.add: got an unexpected keyword .*'thrid'"):
            refute_enqueued(add, thrid=3)
        with pytest.raises(InvalidOption, match="priority=9999999: it must be"):
            refute_enqueued(add, priority=9_999_999)

    def test_job_of_an_older_signature_is_no_error(self):
        job = make_job(task="x")
        Job.objects.filter(pk=job.pk).update(
            source_type="task", source_method=noop.name, args={"args": [1, 2]}
        )

        assert_enqueued(noop)


@pytest.mark.django_db
class TestCapturedJobs:
    def test_jobs_of_the_block_are_captured_in_order(self):
        noop.delay()
        with captured_jobs() as jobs:
            first = add.using(priority=500).delay(1)
            many = add.enqueue_many([2, 3])
            run_pending()

        assert [job.pk for job in jobs] == [first.pk, *many]
        assert jobs[0].state == "success"

    def test_job_is_not_captured_when_it_is_rolled_back(self):
        with captured_jobs() as jobs, transaction.atomic():
            noop.delay()
            transaction.set_rollback(True)

        assert jobs == []


@pytest.mark.django_db
class TestEager:
    def test_task_runs_at_once_in_the_block_only(self, settings):
        settings.TENANTQUEUE = {"DEFAULT_QUEUE": "mine"}
        with eager():
            assert add.delay(1, 2).result == 3

        assert add.delay(1, 2).queue.name == "mine"

    @eager()
    def test_task_runs_at_once_in_a_decorated_test(self):
        assert add.delay(1, 2).result == 3


@eager()
class EagerCase(TestCase):
    async def test_task_runs_at_once_in_a_decorated_case(self):
        assert (await add.adelay(1, 2)).result == 3


@pytest.mark.django_db
class TestTravel:
    def test_scheduled_job_runs_when_its_time_has_come(self):
        noop.using(run_at=HOUR).delay()

        with travel(timedelta(minutes=59)):
            assert run_pending() == []
        with travel(HOUR):
            (job,) = run_pending()
        assert abs(job.started_at - timezone.now() - HOUR) < timedelta(minutes=1)

    def test_retries_run_when_their_times_have_come(self):
        fail.using(max_attempts=3).delay()

        attempts = [run_pending()[0].attempt]
        with travel(60):
            attempts += [run_pending()[0].attempt]
            with travel(60):
                attempts += [run_pending()[0].attempt]
        assert attempts == [1, 2, 3]

    def test_job_is_cancelled_when_it_has_expired(self):
        job = noop.using(expires_at=60).delay()

        with travel(61):
            assert run_pending() == []
        assert job.refresh().state == "cancelled"

    def test_unique_key_is_free_when_it_has_expired(self):
        unique = noop.using(unique=Unique("until_expired", ttl=60))
        first = unique.delay()

        assert unique.delay() == first
        with travel(61):
            assert unique.delay() != first

    def test_rate_has_room_when_time_has_passed(self):
        TenantQueue.objects.filter(pk=noop.delay().queue_id).update(max_per_second=1 / 60)
        noop.delay()

        assert len(run_pending()) == 1
        with travel(120):
            assert len(run_pending()) == 1

    def test_clock_is_that_of_django_and_the_database(self):
        then = datetime(2040, 5, 6, tzinfo=UTC)

        def clocks():
            with connection.cursor() as cursor:
                cursor.execute("SELECT clock_timestamp(), statement_timestamp(), now()")
                read = cursor.fetchone()
            return [*read, timezone.now(), make_now()]

        def make_now():
            return Job.objects.annotate(now=Now()).values_list("now", flat=True)[0]

        noop.delay()
        before = clocks()
        with travel(then):
            inside = clocks()
            with travel(-HOUR):
                nested = clocks()
            again = clocks()
        after = clocks()

        minute = timedelta(minutes=1)
        assert all(abs(moment - then) < minute for moment in [*inside, *again])
        assert all(abs(moment - then + HOUR) < minute for moment in nested)
        assert all(abs(moment - timezone.now()) < minute for moment in [*before, *after])

    def test_clock_is_set_back_when_the_block_breaks_the_transaction(self):
        with (
            pytest.raises(DatabaseError, match="division by zero"),
            transaction.atomic(),
            travel(HOUR),
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT 1 / 0")

        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp() - pg_catalog.clock_timestamp()")
            assert cursor.fetchone()[0] < timedelta(seconds=1)

    def test_naive_moment_is_refused(self):
        with pytest.raises(InvalidOption, match="is naive"), travel(datetime(2030, 1, 1)):  # noqa: DTZ001
            pass


class CommittedTravel(TransactionTestCase):
    def test_nothing_is_left_behind_when_it_commits(self):
        noop.using(run_at=HOUR).delay()
        with travel(HOUR):
            assert len(run_pending()) == 1

        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regnamespace('tenantqueue_travel'), current_schema()")
            assert cursor.fetchone() == (None, "public")
