"""Tasks of Celery run as jobs: what is kept, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from billiard.einfo import ExceptionInfo
from celery import Signature, shared_task, signals
from celery import Task as CeleryTask
from celery import group as group_of_celery
from celery.exceptions import Ignore, Reject
from celery.fixups.django import DjangoWorkerFixup
from django.conf import settings as django_settings
from django.utils import timezone

from django_tenantqueue import Placeholder, current_job, delayed, group, task
from django_tenantqueue.contrib.celery.adopted_tasks import JobRetry
from django_tenantqueue.contrib.celery.run_claim import JobTimeLimit
from django_tenantqueue.exceptions import InvalidOption, TimeLimitExceeded
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending
from django_tenantqueue.worker.remote import known_as
from tests.celeryapp.settings import EXECUTORS
from tests.celeryapp.tasks import breaks, by_itself, never, plus, third_time
from tests.testapp.models import Effect
from tests.testapp.tasks import add, noop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def executors(settings: Any) -> None:
    settings.TENANTQUEUE = {**django_settings.TENANTQUEUE, "EXECUTORS": EXECUTORS}


def run_one(job: Job) -> Job:
    """Run what is ready or waits for another attempt, and return the job as it ended."""
    run_pending(scheduled=True)
    found = Job.objects.find(job.pk)
    assert found is not None
    return found


def test_task_of_celery_runs_as_a_job() -> None:
    job = delayed(plus, tenant="acme", queue="celery")(2, b=3)

    assert (job.task, job.queue.name, job.queue.executor) == (plus.name, "celery", "celery")
    assert run_one(job).result == 5


def test_task_of_celery_can_still_be_called() -> None:
    adopted = task(plus)

    assert adopted(2, 3) == 5


def test_retry_runs_it_again_with_its_number_of_retries() -> None:
    job = run_one(delayed(third_time)())

    assert (job.state, job.attempt) == ("success", 3)
    assert job.result == [2, str(job.pk), third_time.name]


def test_retry_gives_up_after_max_retries() -> None:
    job = run_one(delayed(never)())

    assert (job.state, job.attempt) == ("error", 2)
    assert job.last_error is not None
    assert job.last_error["class"] == "ConnectionError"


def test_error_that_no_one_retries_ends_it() -> None:
    job = run_one(delayed(breaks, max_attempts=5)())

    assert (job.state, job.attempt) == ("error", 1)


CALLED: list[tuple[Any, ...]] = []


class Base(CeleryTask):
    """Notes which handlers are called."""

    abstract = True

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        CALLED.append(("before_start", task_id, args, kwargs))

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        CALLED.append(("on_success", retval))
        fail_in("on_success", kwargs)

    def on_failure(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        CALLED.append(("on_failure", repr(exc), said_of(einfo)))
        fail_in("on_failure", kwargs)

    def on_retry(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        CALLED.append(("on_retry", repr(exc), said_of(einfo)))
        fail_in("on_retry", kwargs)

    def after_return(
        self, status: str, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any
    ) -> None:
        CALLED.append(("after_return", status, said_of(einfo)))
        fail_in("after_return", kwargs)


def said_of(einfo: Any) -> str | None:
    """Return the last line of the traceback that a handler was given."""
    if einfo is None:
        return None
    assert isinstance(einfo, ExceptionInfo)
    return str(einfo.traceback.strip().splitlines()[-1])


def fail_in(name: str, kwargs: dict[str, Any]) -> None:
    if kwargs.get("broken") == name:
        raise ZeroDivisionError(name)


@shared_task(name="tests.handled", base=Base, bind=True, max_retries=3, default_retry_delay=0)
def handled(self: Any, how: str, broken: str = "") -> str:
    """Succeed, fail, or ask for another attempt once."""
    if how == "fail":
        raise ValueError("no")
    if how == "retry" and not self.request.retries:
        self.retry(exc=ConnectionError("later"))
    return how


@pytest.fixture
def called() -> Iterator[list[tuple[Any, ...]]]:
    CALLED.clear()
    yield CALLED
    CALLED.clear()


NO = "ValueError: no"
LATER = (
    "django_tenantqueue.contrib.celery.adopted_tasks.JobRetry: retried for ConnectionError('later')"
)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("ok", [("on_success", "ok"), ("after_return", "SUCCESS", None)]),
        ("fail", [("on_failure", "ValueError('no')", NO), ("after_return", "FAILURE", NO)]),
    ],
)
def test_handlers_are_called(
    how: str, expected: list[tuple[Any, ...]], called: list[tuple[Any, ...]]
) -> None:
    job = run_one(delayed(handled)(how))

    assert called == [("before_start", str(job.pk), (how,), {}), *expected]


def test_handlers_are_called_for_each_attempt(called: list[tuple[Any, ...]]) -> None:
    run_one(delayed(handled)("retry"))

    assert [name for name, *_ in called] == [
        *("before_start", "on_retry"),
        *("before_start", "on_success", "after_return"),
    ]
    assert called[1] == ("on_retry", "ConnectionError('later')", LATER)


@pytest.mark.parametrize(
    ("how", "broken", "expected"),
    [
        ("ok", "on_success", ("success", 1, None)),
        ("ok", "after_return", ("success", 1, None)),
        ("fail", "on_failure", ("error", 1, "ValueError")),
        ("fail", "after_return", ("error", 1, "ValueError")),
        ("retry", "on_retry", ("success", 2, f"{JobRetry.__module__}.JobRetry")),
    ],
)
def test_handler_that_raises_changes_no_outcome(
    how: str,
    broken: str,
    expected: tuple[Any, ...],
    called: list[tuple[Any, ...]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = run_one(delayed(handled)(how, broken=broken))

    stored = job.last_error and job.last_error["class"]
    assert (job.state, job.attempt, stored) == expected
    assert f"{broken}() of job {job.pk} (tests.handled) failed" in caplog.text


class Counting(CeleryTask):
    """Counts its calls, as the base classes of projects do that set something up."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Count, and run the task."""
        CALLED.append(("call", self.request.retries))
        return super().__call__(*args, **kwargs)


@shared_task(name="tests.counted", base=Counting, bind=True, default_retry_delay=0)
def counted(self: Any) -> list[Any]:
    """Ask for another attempt once."""
    if not self.request.retries:
        self.retry(exc=ConnectionError("later"))
    return [self.request.retries, self.request.id]


def test_call_of_the_base_class_is_called(called: list[tuple[Any, ...]]) -> None:
    job = run_one(delayed(counted)())

    assert called == [("call", 0), ("call", 1)]
    assert (job.state, job.result) == ("success", [1, str(job.pk)])


@shared_task(name="tests.ends", bind=True)
def ends(self: Any, how: str) -> str:
    """Raise what tells Celery that there is no outcome."""
    if how == "ignore":
        raise Ignore("it was done before")
    if how == "reject":
        raise Reject("no memory", requeue=False)
    if how == "requeue" and current_job()._claimed.claim_seq == 1:
        raise Reject("no memory", requeue=True)
    if how == "replace":
        self.replace(plus.s(1))
    return how


@pytest.mark.parametrize(
    ("how", "state", "said"),
    [
        ("ignore", "cancelled", "the task raised Ignore: it was done before"),
        ("reject", "error", "no memory"),
        ("replace", "error", r"self.replace(tests.celeryapp.tasks.plus(1)) is not possible"),
    ],
)
def test_job_ends_when_its_task_has_no_outcome(
    how: str, state: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(Signature, "apply_async", lambda *args, **kwargs: sent.append(args))

    job = run_one(delayed(ends)(how))

    assert (job.state, job.attempt, sent) == (state, 1, [])
    assert job.last_error is not None
    assert said in job.last_error["message"]


def test_job_loses_no_attempt_when_its_task_wants_the_message_requeued() -> None:
    job = run_one(delayed(ends)("requeue"))

    assert (job.state, job.attempt, job.claim_seq) == ("success", 1, 2)


SIGNALS = ("task_prerun", "task_postrun", "task_success", "task_failure", "task_retry")


@pytest.fixture
def sent() -> Iterator[list[tuple[Any, ...]]]:
    """Yield the signals of Celery that were sent: name, task, id, state."""
    found: list[tuple[Any, ...]] = []

    def note(signal: Any, sender: Any, **said: Any) -> None:
        request = sender.request
        found.append((signal.name, sender.name, request.id, said.get("state")))
        if signal.name == "task_failure":
            found.append((repr(said["exception"]), said_of(said["einfo"])))

    for name in SIGNALS:
        getattr(signals, name).connect(note, weak=False)
    yield found
    for name in SIGNALS:
        getattr(signals, name).disconnect(note)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("ok", ["task_success", "task_postrun SUCCESS"]),
        ("fail", ["task_failure", "task_postrun FAILURE"]),
        ("retry", ["task_retry", "task_postrun RETRY", "task_prerun", "task_success"]),
    ],
)
def test_signals_of_celery_tell_the_outcome_of_the_task(
    how: str, expected: list[str], sent: list[tuple[Any, ...]]
) -> None:
    job = run_one(delayed(handled)(how))

    about = [one for one in sent if len(one) == 4]
    assert {(name, task_id) for _, name, task_id, _ in about} == {("tests.handled", str(job.pk))}
    said = [f"{signal} {state}" if state else signal for signal, _, _, state in about]
    assert said[: len(expected) + 1] == ["task_prerun", *expected]
    if how == "fail":
        assert ("ValueError('no')", NO) in sent


@shared_task(name="tests.writes")
def writes(note: str) -> None:
    """Write a row."""
    Effect.objects.create(job_id=current_job().id, note=note)


@pytest.mark.django_db(transaction=True)
def test_connections_stay_open_when_celerys_fixup_closes_those_of_tasks() -> None:
    fixup = DjangoWorkerFixup(plus.app)
    signals.task_prerun.connect(fixup.on_task_prerun)
    try:
        job = run_one(task(atomic=True)(writes).delay("kept"))
    finally:
        signals.task_prerun.disconnect(fixup.on_task_prerun)

    assert (job.state, job.last_error) == ("success", None)
    assert Effect.objects.filter(job_id=job.pk, note="kept").exists()


@shared_task(name="tests.unstorable", ignore_result=True)
def unstorable() -> object:
    """Return what no one reads."""
    return object()


def test_result_is_dropped_when_the_task_ignores_it() -> None:
    job = run_one(delayed(unstorable)())

    assert (job.state, job.result) == ("success", None)


@shared_task(
    name="tests.five_times",
    autoretry_for=(ConnectionError,),
    retry_kwargs={"max_retries": 5, "countdown": 0},
)
def five_times() -> int:
    """Raise what is retried five times."""
    if current_job().attempt <= 5:
        raise ConnectionError("again")
    return current_job().attempt


@pytest.mark.parametrize(("made", "args", "result"), [(by_itself, (3,), 3), (five_times, (), 6)])
def test_autoretry_for_runs_it_again(made: Any, args: tuple[Any, ...], result: int) -> None:
    job = run_one(delayed(made)(*args))

    assert (job.state, job.result) == ("success", result)


def test_error_is_that_of_the_task_when_the_job_has_no_attempt_left() -> None:
    job = run_one(delayed(five_times, max_attempts=2)())

    assert (job.state, job.attempt) == ("error", 2)
    assert job.last_error is not None
    assert job.last_error["class"] == "ConnectionError"


@pytest.mark.parametrize(
    "given", [plus.s(1), plus.s(1) | plus.s(2), group_of_celery([plus.s(1)])], ids=["s", "|", "g"]
)
def test_signature_is_refused_when_it_is_adopted(given: Any) -> None:
    with pytest.raises(InvalidOption, match=r"of Celery, and no task: give the task.*\.using\("):
        delayed(given)


@shared_task(name="tests.limited", soft_time_limit=30, time_limit=60, expires=90, max_retries=None)
def limited() -> None:
    """Do nothing, within limits."""


def test_limits_are_those_of_the_task() -> None:
    before = timezone.now()
    job = delayed(limited)()

    assert (job.timeout_seconds, job.hard_timeout_seconds) == (30, 60)
    assert job.expires_at is not None
    assert timedelta(0) <= job.expires_at - before - timedelta(seconds=90) < timedelta(seconds=30)
    assert job.max_attempts == 32_767


def test_options_of_the_call_win_over_those_of_the_task() -> None:
    assert delayed(limited, timeout=5, max_attempts=2)().max_attempts == 2


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
    job = run_one(delayed(reports)())

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
        ({"serializer": "pickle"}, _function, r"serializer='pickle' is not supported"),
        ({}, _coroutine, "is a coroutine, which Celery does not run"),
    ],
)
def test_what_cannot_be_kept_is_refused_when_it_is_adopted(
    options: dict[str, Any], function: Any, said: str
) -> None:
    name = f"tests.refused {said}"
    refused = shared_task(name=name, **options)(function)

    with pytest.raises(InvalidOption, match=said):
        delayed(refused)()


@shared_task(name="tests.changes", bind=True)
def changes(self: Any, how: str) -> None:
    """Ask for what a job cannot do."""
    self.retry(**{"args": {"args": ("other",)}, "throw": {"throw": False}}[how])


@pytest.mark.parametrize(("how", "said"), [("args", "other arguments"), ("throw", "throw=False")])
def test_retry_that_a_job_cannot_do_is_refused(how: str, said: str) -> None:
    job = run_one(delayed(changes)(how))

    assert (job.state, job.attempt) == ("error", 1)
    assert job.last_error is not None
    assert job.last_error["class"] == "django_tenantqueue.exceptions.NotAllowed"
    assert said in job.last_error["message"]


# beside routings, follow-ups and groups


def test_queue_chooses_the_executor() -> None:
    with pytest.raises(InvalidOption, match="'executor': use queue=…, with one of the NEW_QUEUES"):
        noop.using(executor="celery")
    assert noop.using(queue="celery-mine").delay().queue.executor == "celery"


def test_follow_ups_run_with_the_result_on_both_sides() -> None:
    last = add.using(queue="default").call(Placeholder("result"), 100)
    then = task(plus).using(queue="celery", on_success=last).call(Placeholder("result"), 10)
    add.using(queue="celery", on_success=then).delay(1, 2)

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
    calls = [task(plus).using(queue="celery").call(number, 1) for number in range(3)]

    monitor = group(calls).delay(on_end=collect)
    run_pending()

    assert Job.objects.get(pk=monitor.anchor_id).result == [1, 2, 3]
