"""What becomes of a run: success, another attempt, or the end."""

from __future__ import annotations

import datetime
import json
import re
from datetime import timedelta
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from django.core.cache import cache
from django.core.cache.backends.locmem import LocMemCache
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone, translation
from django.utils.asyncio import async_unsafe

from django_tenantqueue import current_job
from django_tenantqueue.exceptions import InvalidOption, NotAllowed, Retry
from django_tenantqueue.execution import outcome
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.run import run_sync
from django_tenantqueue.models import Job
from django_tenantqueue.settings import TEN_YEARS
from django_tenantqueue.stored_error import describe_error
from django_tenantqueue.testing import run_pending
from tests import sample_tasks
from tests.sample_tasks import Colour, Noting, calls
from tests.testapp import tasks
from tests.testapp.models import Effect, Report

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()


def ran(job: Job, times: int = 1) -> Job:
    for _ in range(times):
        run_pending()
    return job.refresh()


def seconds_until_due(job: Job) -> float:
    return (job.run_at - timezone.now()).total_seconds()


# failures


def test_job_ends_in_error_when_its_attempts_are_spent():
    job = tasks.fail.delay("out of order")
    run_pending(scheduled=True)
    job = job.refresh()

    assert (job.state, job.attempt, len(job.errors)) == ("error", 3, 3)
    assert [error["attempt"] for error in job.errors] == [1, 2, 3]
    last = job.last_error
    assert (last["class"], last["message"]) == ("ValueError", "out of order")
    assert "in fail\n    raise ValueError(message)" in last["traceback"]
    assert last["at"].startswith(str(timezone.now().year))


def test_job_waits_when_an_attempt_has_failed():
    job = ran(tasks.fail.using(max_attempts=9).delay())

    assert (job.state, job.attempt, job.worker_id) == ("scheduled", 1, None)
    assert job.last_error["message"] == "it failed"


def test_job_is_not_repeated_when_the_failure_is_permanent():
    job = ran(tasks.fail_for_good.delay())

    assert (job.state, job.attempt) == ("error", 1)
    assert job.last_error["class"] == "django_tenantqueue.exceptions.Permanent"


def test_job_is_repeated_when_the_task_asks_for_it():
    job = tasks.fail_until.delay(3)
    run_pending(scheduled=True)

    assert job.refresh().result == "succeeded in attempt 3"
    assert job.attempt == 3


def test_job_ends_in_error_when_the_task_asks_for_more_attempts_than_it_has():
    job = sample_tasks.asks_to_be_retried.delay(0)
    run_pending(scheduled=True)

    assert (job.refresh().state, job.attempt) == ("error", 3)


def test_wait_is_the_tasks_own_when_it_says_how_long():
    job = ran(sample_tasks.asks_to_be_retried.delay(500))

    assert 490 < seconds_until_due(job) <= 500


@pytest.mark.parametrize("after", [-1, 1e12, timedelta(days=-1)])
def test_retry_is_refused_when_its_wait_makes_no_sense(after):
    with pytest.raises(InvalidOption, match="give seconds or a timedelta between 0 and ten"):
        Retry(after=after)


@pytest.mark.parametrize(("kind", "state"), [("ValueError", "scheduled"), ("TypeError", "error")])
def test_error_is_repeated_when_the_task_lists_its_class(kind, state):
    assert ran(sample_tasks.retried_when_listed.delay(kind)).state == state


@pytest.mark.parametrize(("message", "state"), [("try again", "scheduled"), ("no", "error")])
def test_error_is_repeated_when_the_tasks_rule_says_so(message, state):
    assert ran(sample_tasks.retried_when_asked.delay(message)).state == state


def test_job_ends_in_error_when_the_tasks_rule_fails():
    job = ran(sample_tasks.retried_by_broken_rule.delay())

    assert job.state == "error"
    assert job.last_error["class"] == "ZeroDivisionError"
    assert "the task's own" in job.last_error["traceback"]


def test_wait_follows_the_tasks_rule_when_it_has_one():
    job = ran(sample_tasks.backed_off_by_rule.delay())

    assert 100 < seconds_until_due(job) <= 104


@pytest.mark.parametrize("attempt", [1, 2, 3, 7, 29])
def test_wait_doubles_with_jitter_when_attempts_go_on(attempt, monkeypatch):
    settings = {"BACKOFF_BASE": 5.0, "BACKOFF_MAX": 3600.0}
    seen = set()
    with override_settings(TENANTQUEUE=settings):
        for _ in range(200):
            seen.add(outcome._backoff_seconds(None, attempt, ValueError()))
    expected = min(3600.0, 5.0 * 2 ** (attempt - 1))

    assert expected * 0.8 <= min(seen) < expected * 0.9
    assert expected * 1.1 < max(seen) <= expected * 1.2


def test_wait_grows_from_the_tasks_own_number_when_it_has_one():
    job = ran(sample_tasks.backed_off_by_number.delay())
    assert 7 < seconds_until_due(job) <= 12

    Job.objects.update(attempt=20, run_at=timezone.now(), state="ready")
    assert 2800 < seconds_until_due(ran(job)) <= 4320


def test_newest_errors_are_kept_when_there_are_too_many():
    job = sample_tasks.fails.delay()
    with override_settings(TENANTQUEUE={"MAX_ERRORS": 3}):
        run_pending(scheduled=True)
    job = job.refresh()

    assert job.attempt == 20
    assert [error["attempt"] for error in job.errors] == [18, 19, 20]


def test_error_is_kept_when_its_message_cannot_be_stored():
    job = ran(sample_tasks.raises.delay("x"))
    assert job.last_error["message"] == "x"
    error = describe_error(ValueError("a\x00b\ud800" + "c" * 5000), 1)

    assert error["message"].startswith("a\\x00b\\ud800ccc")
    assert "characters left out" in error["message"]
    assert "\x00" not in error["traceback"]


def test_job_ends_in_error_when_its_exception_cannot_be_shown():
    job = ran(sample_tasks.raises_unspeakable.delay())

    assert job.state == "error"
    assert job.last_error["message"] == "<Unspeakable whose message cannot be shown>"


def test_job_ends_in_error_when_its_task_leaves_the_interpreter():
    assert ran(sample_tasks.exits.delay()).last_error["class"] == "SystemExit"


# results


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("NUL", "the result contains a NUL"),
        ("NUL in a key", "the result contains a NUL"),
        ("NaN", "cannot be stored as JSON"),
        ("lone surrogate", "lone surrogate"),
        ("object", "cannot be stored as JSON"),
        ("bytes", "cannot be stored as JSON"),
        ("large", "2,000,002 bytes of JSON, more than TENANTQUEUE['MAX_RESULT_BYTES']"),
    ],
)
def test_job_ends_in_error_when_its_result_cannot_be_stored(what, message):
    job = ran(sample_tasks.returns.delay(what))

    assert (job.state, job.attempt, job.result) == ("error", 1, None)
    assert job.last_error["class"].endswith("InvalidResult")
    assert message in job.last_error["message"]


def test_result_is_stored_when_it_only_looks_like_a_nul():
    assert ran(sample_tasks.returns.delay("escaped")).result == "\\u0000"


@pytest.mark.parametrize("what", ["NUL", "surrogate", "object", "large"])
def test_job_ends_in_error_when_its_statistics_cannot_be_stored(what):
    job = ran(sample_tasks.says.delay(what))

    assert (job.state, job.stats) == ("error", None)
    assert "statistics" in job.last_error["message"]
    assert job.last_error["class"].endswith("InvalidResult")


@override_settings(TENANTQUEUE={"LARGE_RESULT_STORE": "default"})
def test_result_goes_to_the_cache_when_it_is_too_large_for_the_row():
    job = ran(sample_tasks.returns.delay("large"))

    assert (job.state, job.result_data) == ("success", None)
    assert job.result_ref.startswith("default:tenantqueue-result-")
    assert len(job.result) == 2_000_000


@override_settings(TENANTQUEUE={"RESULT_STORE": "default"})
def test_result_goes_to_the_cache_when_that_is_the_store():
    job = ran(tasks.echo.delay({"a": [1]}))

    assert job.result_data is None
    assert job.result == {"a": [1]}
    cache.clear()
    with pytest.raises(LookupError, match=f"the result of job {job.pk} is no longer in the cache"):
        _ = job.result


@override_settings(TENANTQUEUE={"RESULT_STORE": "default"})
def test_event_loop_waits_for_no_cache_when_a_coroutine_has_a_result(monkeypatch):
    monkeypatch.setattr(LocMemCache, "set", async_unsafe(LocMemCache.set))

    assert ran(tasks.async_add.delay(1, 2)).result == 3


def test_progress_and_statistics_are_stored_when_a_job_has_ended():
    job = ran(tasks.report_progress.delay(3))

    assert (job.progress_done, job.progress_total, job.progress_message) == (3, 3, "step 3")
    assert job.progress_percent == 100.0
    assert job.stats == {"rows": 3}


# expiry, context, tenant


def test_job_is_cancelled_when_it_has_expired_before_its_start(monkeypatch):
    monkeypatch.setattr("django_tenantqueue.testing.expire", lambda using: 0)  # it comes too late
    job = ran(tasks.noop.using(expires_at=timezone.now() - timedelta(seconds=1)).delay())

    assert job.state == "cancelled"
    assert "it expired at" in job.last_error["message"]


def test_job_runs_when_it_has_not_expired():
    assert ran(tasks.noop.using(expires_at=timedelta(hours=1)).delay()).state == "success"


def test_tenant_and_queue_are_known_when_a_job_runs():
    seen = ran(tasks.whoami.using(tenant="acme", queue="mail").delay()).result

    assert (seen["tenant"], seen["queue"], seen["attempt"]) == ("acme", "mail", 1)


def test_jobs_belong_to_the_same_tenant_when_a_job_enqueues_them():
    sample_tasks.enqueues.using(tenant="acme").delay(2)

    assert [job.queue.tenant for job in run_pending()] == ["acme"] * 3


def test_language_and_time_zone_travel_when_they_are_not_the_defaults():
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        job = tasks.whoami.delay()

    seen = ran(job).result

    assert (seen["language"], seen["time_zone"]) == ("de", "Asia/Tokyo")
    assert translation.get_language() == "en-us"
    assert timezone.get_current_timezone_name() == "UTC"


@pytest.mark.parametrize(
    ("zone", "seen"),
    [
        (timezone.get_fixed_timezone(120), "+0200"),
        (timezone.get_fixed_timezone(-210), "-0330"),
        (datetime.timezone(timedelta(hours=2), "CEST"), "+0200"),
        (ZoneInfo("Etc/GMT-3"), "+03"),
    ],
    ids=["east", "west", "named", "of the zone files"],
)
def test_time_zone_travels_when_its_offset_is_fixed(zone, seen):
    with timezone.override(zone):
        job = tasks.whoami.delay()

    assert ran(job).result["time_zone"] == seen


@pytest.mark.parametrize("zone", [datetime.UTC, ZoneInfo("UTC")], ids=str)
def test_no_time_zone_travels_when_it_is_the_default_by_another_name(zone):
    with timezone.override(zone):
        assert tasks.whoami.delay().refresh().context is None


def test_nothing_travels_when_all_is_as_by_default():
    assert tasks.whoami.delay().refresh().context is None


COLOUR = {"CONTEXT": ["tests.sample_tasks.Colour"]}


@override_settings(TENANTQUEUE=COLOUR)
def test_own_value_travels_when_a_carrier_is_listed(monkeypatch):
    monkeypatch.setattr(Colour, "value", "red")

    assert ran(sample_tasks.colour.delay()).result == "red"
    assert Colour.applied is None


@override_settings(TENANTQUEUE=COLOUR)
def test_enqueue_is_refused_when_a_carried_value_is_not_json(monkeypatch):
    monkeypatch.setattr(Colour, "value", object())

    with pytest.raises(ValueError, match=r"a value of TENANTQUEUE\['CONTEXT'\] is not JSON"):
        sample_tasks.colour.delay()


@override_settings(TENANTQUEUE={"WRAPPERS": ["tests.sample_tasks.capable_wrapper"]})
@pytest.mark.parametrize("name", ["noop", "async_noop", "fail_for_good"])
def test_wrapper_is_put_around_when_a_job_runs(name):
    job = getattr(tasks, name).using(tenant="acme").delay()
    run_pending()

    assert calls == [("enter", job.pk, "acme"), ("leave", job.pk)]


IN_SCHEMA = {"WRAPPERS": ["tests.sample_tasks.capable_wrapper", "tests.sample_tasks.in_schema"]}
REFUSED = r"'tests.testapp.tasks.async_noop' is a coroutine, and .*'tests.sample_tasks.in_schema'"


@pytest.mark.parametrize("is_eager", [False, True], ids=["stored", "eager"])
def test_coroutine_is_refused_when_a_wrapper_may_not_surround_it(is_eager):
    bound = tasks.async_noop.using(tenant="acme")

    with override_settings(TENANTQUEUE={**IN_SCHEMA, "EAGER": is_eager}):
        for enqueue in (bound.delay, lambda: bound.enqueue_many([()])):
            with pytest.raises(NotAllowed, match=REFUSED):
                enqueue()

    assert not Job.objects.exists()
    assert calls == []


@override_settings(TENANTQUEUE=IN_SCHEMA)
def test_coroutine_is_refused_when_it_would_follow_a_job():
    with pytest.raises(NotAllowed, match=REFUSED):
        tasks.noop.using(on_success=tasks.async_noop.call()).delay()

    assert not Job.objects.exists()


def test_waiting_coroutine_fails_when_a_wrapper_may_not_surround_it():
    job = tasks.async_noop.using(tenant="acme").delay()

    with override_settings(TENANTQUEUE=IN_SCHEMA):
        run_pending()

    job = job.refresh()
    assert (job.state, job.attempt, calls) == ("error", 1, [])
    assert re.search(REFUSED, job.errors[0]["message"])


@override_settings(TENANTQUEUE=IN_SCHEMA)
def test_orm_runs_in_the_thread_of_the_wrappers_when_a_task_became_a_coroutine():
    job = ran(sample_tasks.now_a_coroutine.using(tenant="acme").delay())

    assert calls[1] == ("schema of", job.result)


# hooks and signals


def test_hooks_are_called_in_order_when_a_job_succeeds():
    job = sample_tasks.hooked.delay()
    run_pending()

    assert calls == [
        ("enqueue", job.pk),
        ("before", job.pk),
        "run",
        ("success", job.pk, "done"),
        ("after", job.pk),
    ]


def test_hooks_are_called_when_a_coroutine_succeeds():
    job = sample_tasks.hooked_async.delay()
    run_pending()

    assert [call if isinstance(call, str) else call[0] for call in calls] == [
        *("enqueue", "before", "run", "success", "after")
    ]
    assert job.refresh().result == "done"


def test_hooks_are_called_in_order_when_a_job_fails_for_good():
    job = sample_tasks.hooked.delay("x")
    run_pending(scheduled=True)

    assert calls == [
        ("enqueue", job.pk),
        ("before", job.pk),
        "run",
        ("attempt_failed", job.pk, ValueError),
        ("after", job.pk),
        ("before", job.pk),
        "run",
        ("attempt_failed", job.pk, ValueError),
        ("failure", job.pk),
        ("after", job.pk),
    ]


def test_job_fails_when_its_before_hook_raises(monkeypatch):
    monkeypatch.setattr(Noting, "before", lambda self, job: 1 / 0)

    job = ran(sample_tasks.hooked.using(max_attempts=1).delay())

    assert job.last_error["class"] == "ZeroDivisionError"
    assert "run" not in calls


def test_job_succeeds_when_a_later_hook_raises(caplog):
    job = ran(sample_tasks.with_broken_hooks.delay())

    assert (job.state, job.result) == ("success", "done")
    assert "hook 'success' of job" in caplog.text


# atomic tasks


def test_effect_and_success_are_stored_together_when_a_task_is_atomic():
    job = ran(tasks.write_effect.delay("x"))

    assert (job.state, job.result) == ("success", "x")
    assert Effect.objects.filter(job_id=job.pk).count() == 1


def test_effect_is_undone_when_an_atomic_task_fails():
    job = ran(tasks.write_effect.delay("x", error=True))

    assert job.state == "error"
    assert not Effect.objects.exists()


@pytest.mark.parametrize("value", ["NUL", "NaN"])
def test_effect_is_undone_when_the_result_cannot_be_stored(value):
    job = ran(sample_tasks.writes_and_returns.delay(value))

    assert (job.state, job.last_error["class"].rpartition(".")[2]) == ("error", "InvalidResult")
    assert not Effect.objects.exists()


def test_end_is_stored_when_the_task_has_broken_the_transaction_of_the_test():
    with transaction.atomic():
        job = sample_tasks.breaks_the_transaction.delay()
        run_pending()

    assert calls == ["refused"]
    assert job.refresh().state == "success"


# current_job()


def test_there_is_no_current_job_when_none_runs():
    with pytest.raises(LookupError, match="no job runs here"):
        current_job()


def test_current_job_is_left_when_the_run_has_ended():
    ran(tasks.whoami.delay())

    with pytest.raises(LookupError):
        current_job()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "3"])
def test_progress_is_refused_when_it_is_no_number(value, claimed_job):
    with pytest.raises(ValueError, match="must be a finite number"):
        RunningJob(claimed_job()).progress(value)


def test_stop_is_raised_when_the_task_reports_progress(claimed_job):
    running = RunningJob(claimed_job())
    running.cancel_requested = True

    with pytest.raises(Exception, match="the cancellation of job 7 was requested"):
        running.progress(1)


def test_job_is_given_back_when_its_task_is_unknown(claimed_job):
    job = claimed_job(source_method="tests.nowhere", task="tests.nowhere")

    ended = run_sync(RunningJob(job), 1)

    assert ended.give_back == outcome.UNKNOWN_DELAY
    assert ended.finished is None
    reason = json.loads(ended.reason or "")
    assert reason["class"] == outcome.UNKNOWN_CLASS
    assert "'tests.nowhere'" in reason["message"]


@pytest.mark.parametrize(
    ("returned", "seconds"), [(0, 0.25), (1, 0.5), (3, 2.0), (50, outcome.UNKNOWN_DELAY)]
)
def test_job_is_given_back_when_its_arguments_do_not_fit(claimed_job, returned, seconds):
    job = claimed_job(args='{"args": [], "kwargs": {"gone": 1}}', claim_seq=1 + returned)

    ended = run_sync(RunningJob(job), 1)

    assert (ended.give_back, ended.is_unknown, ended.failed) == (seconds, True, None)
    reason = json.loads(ended.reason or "")
    assert reason["class"] == outcome.UNKNOWN_CLASS
    assert "got an unexpected keyword argument 'gone'" in reason["message"]


def test_attempt_fails_when_the_task_itself_raises_a_type_error(claimed_job):
    job = claimed_job(source_method="tests.testapp.tasks.add", args='{"args": [1, "x"]}')

    ended = run_sync(RunningJob(job), 1)

    assert (ended.give_back, ended.is_unknown) == (None, False)
    assert ended.failed is not None


def test_nothing_is_written_when_the_run_was_lost(claimed_job):
    running = RunningJob(claimed_job(source_method="tests.testapp.tasks.fail"))
    running.lost = True

    assert run_sync(running, 1).lost


def test_instances_are_loaded_for_each_run_when_they_are_arguments():
    report = Report.objects.create(title="Sales")
    job = tasks.fail_until.delay(1)
    assert ran(job).state == "success"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE testapp_report SET title = 'Later'")

    assert ran(report.delay.execute()).result == "Later as html"


@pytest.mark.parametrize(
    ("own", "seconds"), [(float("inf"), TEN_YEARS), (1e300, TEN_YEARS), (-5.0, 0.0), (7.0, 7.0)]
)
def test_wait_is_bounded_when_the_tasks_own_is_not(own, seconds):
    task = SimpleNamespace(_backoff_seconds=lambda attempt, error: own)

    assert outcome._backoff_seconds(task, 1, ValueError()) == seconds


def test_wait_is_that_of_the_settings_when_the_tasks_own_is_no_number():
    task = SimpleNamespace(_backoff_seconds=lambda attempt, error: float("nan"))

    assert 4.0 <= outcome._backoff_seconds(task, 1, ValueError()) <= 6.0
