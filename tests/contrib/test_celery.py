"""Tasks of Celery run as jobs: what is kept, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import Task as CeleryTask
from celery import shared_task
from django.conf import settings as django_settings
from django.utils import timezone

from django_tenantqueue import Placeholder, current_job, delay, group, task
from django_tenantqueue.contrib.celery.running import JobTimeLimit
from django_tenantqueue.exceptions import InvalidOption, TimeLimitExceeded
from django_tenantqueue.models import Job, Routing
from django_tenantqueue.testing import run_pending
from django_tenantqueue.worker.remote import known_as
from tests.celeryapp.settings import EXECUTORS
from tests.celeryapp.tasks import breaks, by_itself, never, plus, third_time
from tests.testapp.tasks import add, noop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def executors(settings: Any) -> None:
    """Give the project the executor `celery`."""
    settings.TENANTQUEUE = {**django_settings.TENANTQUEUE, "EXECUTORS": EXECUTORS}


def run_one(job: Job) -> Job:
    """Run what is ready or waits for another attempt, and return the job as it ended."""
    run_pending(scheduled=True)
    found = Job.objects.find(job.pk)
    assert found is not None
    return found


def test_task_of_celery_runs_as_a_job() -> None:
    job = delay(plus, tenant="acme", executor="celery")(2, b=3)

    assert (job.name, job.queue.name, job.queue.executor) == (plus.name, "celery", "celery")
    assert run_one(job).result == 5


def test_task_of_celery_can_still_be_called() -> None:
    adopted = task(plus)

    assert adopted(2, 3) == 5


def test_retry_runs_it_again_with_its_number_of_retries() -> None:
    job = run_one(delay(third_time)())

    assert (job.state, job.attempt) == ("success", 3)
    assert job.result == [2, str(job.pk), third_time.name]


def test_retry_gives_up_after_max_retries() -> None:
    job = run_one(delay(never)())

    assert (job.state, job.attempt) == ("error", 2)
    assert job.last_error is not None
    assert job.last_error["class"] == "ConnectionError"


def test_autoretry_for_runs_it_again() -> None:
    job = run_one(delay(by_itself)(3))

    assert (job.state, job.result) == ("success", 3)


def test_error_that_no_one_retries_ends_it() -> None:
    job = run_one(delay(breaks, max_attempts=5)())

    assert (job.state, job.attempt) == ("error", 1)


CALLED: list[tuple[Any, ...]] = []


class Base(CeleryTask):
    """Notes which handlers are called."""

    abstract = True

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        """Note it."""
        CALLED.append(("before_start", task_id, args, kwargs))

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        """Note it."""
        CALLED.append(("on_success", retval))

    def on_failure(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Note it."""
        CALLED.append(("on_failure", repr(exc)))

    def on_retry(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Note it."""
        CALLED.append(("on_retry", repr(exc)))

    def after_return(
        self, status: str, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any
    ) -> None:
        """Note it."""
        CALLED.append(("after_return", status))


@shared_task(name="tests.handled", base=Base, bind=True, max_retries=3, default_retry_delay=0)
def handled(self: Any, how: str) -> str:
    """Succeed, fail, or ask for another attempt once."""
    if how == "fail":
        raise ValueError("no")
    if how == "retry" and not self.request.retries:
        self.retry(exc=ConnectionError("later"))
    return how


@pytest.fixture
def called() -> Iterator[list[tuple[Any, ...]]]:
    """Yield the handlers that were called."""
    CALLED.clear()
    yield CALLED
    CALLED.clear()


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("ok", [("on_success", "ok"), ("after_return", "SUCCESS")]),
        ("fail", [("on_failure", "ValueError('no')"), ("after_return", "FAILURE")]),
    ],
)
def test_handlers_are_called(
    how: str, expected: list[tuple[Any, ...]], called: list[tuple[Any, ...]]
) -> None:
    job = run_one(delay(handled)(how))

    assert called == [("before_start", str(job.pk), (how,), {}), *expected]


def test_handlers_are_called_for_each_attempt(called: list[tuple[Any, ...]]) -> None:
    run_one(delay(handled)("retry"))

    assert [name for name, *_ in called] == [
        *("before_start", "on_retry", "after_return"),
        *("before_start", "on_success", "after_return"),
    ]
    assert called[1] == ("on_retry", "ConnectionError('later')")


@shared_task(name="tests.limited", soft_time_limit=30, time_limit=60, expires=90, max_retries=None)
def limited() -> None:
    """Do nothing, within limits."""


def test_limits_are_those_of_the_task() -> None:
    before = timezone.now()
    job = delay(limited)()

    assert (job.timeout_seconds, job.hard_timeout_seconds) == (30, 60)
    assert job.expires_at is not None
    assert timedelta(0) <= job.expires_at - before - timedelta(seconds=90) < timedelta(seconds=30)
    assert job.max_attempts == 32_767


def test_options_of_the_call_win_over_those_of_the_task() -> None:
    assert delay(limited, timeout=5, max_attempts=2)().max_attempts == 2


def test_soft_limit_is_known_to_tasks_of_both_kinds() -> None:
    from celery.exceptions import SoftTimeLimitExceeded

    raised = known_as[TimeLimitExceeded]

    assert raised is JobTimeLimit
    assert issubclass(raised, SoftTimeLimitExceeded)


@shared_task(name="tests.reports", bind=True)
def reports(self: Any) -> None:
    """Report how far it is."""
    self.update_state(state="PROGRESS", meta={"current": 3, "total": 4, "rows": 7})


def test_update_state_reports_progress_and_statistics() -> None:
    job = run_one(delay(reports)())

    assert (job.progress_done, job.progress_total) == (3, 4)
    assert job.stats["rows"] == 7


async def _coroutine() -> None:
    """Do nothing."""


def _function() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("options", "function", "said"),
    [
        ({"rate_limit": "10/m"}, _function, r"rate_limit='10/m' counts for each Celery worker"),
        ({"serializer": "pickle"}, _function, r"serializer='pickle' cannot be kept"),
        ({}, _coroutine, "is a coroutine, which Celery does not run"),
    ],
)
def test_what_cannot_be_kept_is_refused_when_it_is_adopted(
    options: dict[str, Any], function: Any, said: str
) -> None:
    name = f"tests.refused {said}"
    refused = shared_task(name=name, **options)(function)

    with pytest.raises(InvalidOption, match=said):
        delay(refused)()


@shared_task(name="tests.changes", bind=True)
def changes(self: Any, how: str) -> None:
    """Ask for what a job cannot do."""
    self.retry(**{"args": {"args": ("other",)}, "throw": {"throw": False}}[how])


@pytest.mark.parametrize(("how", "said"), [("args", "other arguments"), ("throw", "throw=False")])
def test_retry_that_a_job_cannot_do_is_refused(how: str, said: str) -> None:
    job = run_one(delay(changes)(how))

    assert (job.state, job.attempt) == ("error", 1)
    assert job.last_error is not None
    assert job.last_error["class"] == "django_tenantqueue.exceptions.NotAllowed"
    assert said in job.last_error["message"]


# beside routings, follow-ups and groups


def test_executor_of_the_call_wins_over_a_routing() -> None:
    Routing.objects.create(pattern="*", queue="heavy", tenant="")

    assert noop.using(executor="celery").delay().queue.name == "celery"


def test_job_that_a_routing_sends_to_a_queue_of_an_executor_goes_there() -> None:
    Routing.objects.create(pattern="tests.testapp.tasks.*", queue="celery-heavy", tenant="")

    assert noop.delay().queue.executor == "celery"


def test_queue_outside_of_the_executor_is_refused_with_it() -> None:
    with pytest.raises(InvalidOption, match="'mine' is not one of executor 'celery'"):
        noop.using(executor="celery", queue="mine")
    assert noop.using(executor="celery", queue="celery-mine").delay().queue.name == "celery-mine"


def test_follow_ups_run_with_the_result_on_both_sides() -> None:
    last = add.using(queue="default").call(Placeholder("result"), 100)
    then = task(plus).using(executor="celery", then=last).call(Placeholder("result"), 10)
    add.using(executor="celery", then=then).delay(1, 2)

    assert [(job.queue.executor, job.result) for job in run_pending()] == [
        ("celery", 3),
        ("celery", 13),
        (None, 113),
    ]


@task(name="tests.collect")
def collect() -> list[Any]:
    """Return the results of the details."""
    summary = current_job().summary
    assert summary is not None
    return [job.result for job in summary.details()]


def test_group_collects_the_results_of_an_executor() -> None:
    calls = [task(plus).using(executor="celery").call(number, 1) for number in range(3)]

    monitor = group(calls).delay(on_done=collect)
    run_pending()

    assert Job.objects.get(pk=monitor.anchor_id).result == [1, 2, 3]
