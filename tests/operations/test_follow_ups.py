"""What follows a job: enqueued by its end, in the same transaction, once."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from django_tenantqueue import ConcurrentJobMonitor, Placeholder, Unique, current_job, delayed, task
from django_tenantqueue.calls.call import Call
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption, QueueRetired
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.operations.again import enqueue_again
from django_tenantqueue.operations.maintain import expire, relane
from django_tenantqueue.operations.rescue import DeathReport, rescue_worker
from django_tenantqueue.status.tenant_export import export_jobs
from django_tenantqueue.testing import assert_enqueued, captured_jobs, eager, run_pending
from tests.factories import make_jobs, make_queue, state_of
from tests.testapp.models import Report
from tests.testapp.tasks import add, async_add, echo, fail, noop

pytestmark = pytest.mark.django_db

RESULT = Placeholder("result")


@task(name="follow_ups.tell")
def tell() -> dict[str, object]:
    previous = current_job().previous
    assert previous is not None
    return {"id": previous.pk, "state": previous.state, "error": bool(previous.last_error)}


@task(name="follow_ups.fail_once", max_attempts=2, backoff=0)
def fail_once() -> int:
    if current_job().attempt == 1:
        raise ValueError("the first attempt")
    return 7


@task(name="follow_ups.atomic", atomic=True)
def add_atomically(first: int, second: int) -> int:
    return first + second


@task(name="follow_ups.fail_at_first", max_attempts=1)
def fail_at_first() -> int:
    if not Job.objects.get(pk=current_job().id).errors:
        raise ValueError("the first run")
    return 7


@task(name="follow_ups.imitation")
def imitation() -> dict[str, str]:
    return {"__tenantqueue__": "job_id"}


@task(name="follow_ups.tell_none")
async def tell_none() -> bool:
    return await current_job().aprevious() is None


@task(name="follow_ups.declared", on_success=echo.call([RESULT]))
def declared(value: int) -> int:
    return value


seen: list[tuple[object, str, str]] = []


@task(name="follow_ups.note")
def note(value: object) -> None:
    previous = current_job().previous
    seen.append((value, current_job().tenant, previous.state if previous else ""))


def followers(job: Job) -> list[Job]:
    return list(Job.objects.filter(previous_id=job.pk).order_by("pk"))


def results(jobs: list[Job]) -> list[object]:
    return [job.result for job in jobs]


def test_follow_up_is_enqueued_with_the_result_when_a_job_has_succeeded():
    job = add.using(on_success=echo.call(RESULT)).delay(1, 2)
    assert Job.objects.count() == 1

    assert results(run_pending()) == [3, 3]
    assert followers(job)[0].previous_id == job.pk


@pytest.mark.parametrize("first", [async_add, add_atomically], ids=["coroutine", "atomic"])
def test_follow_up_is_enqueued_when_another_kind_of_task_has_succeeded(first):
    first.using(on_success=async_add.call(RESULT, second=1)).delay(1, 2)

    assert results(run_pending()) == [3, 4]


def test_links_of_a_chain_run_one_after_another_with_their_own_options():
    last = echo.using(tenant="c", queue="mail", session="s", max_attempts=7).call(RESULT)
    middle = add.using(tenant="b", priority=10, on_success=last).call(RESULT, 10)

    add.using(tenant="a", created_by="eve", on_success=middle).delay(1, 2)
    ran = run_pending()

    assert results(ran) == [3, 13, 13]
    assert [(job.tenant, job.queue.name, job.priority) for job in ran] == [
        ("a", "default", 240),
        ("b", "default", 10),
        ("c", "mail", 240),
    ]
    assert (ran[2].session_key, ran[2].max_attempts, ran[2].created_by) == ("c/s", 7, "eve")
    assert [job.previous_id for job in ran] == [None, ran[0].pk, ran[1].pk]


def test_follow_up_belongs_to_the_tenant_of_the_job_before_when_it_names_none():
    add.using(tenant="a", on_success=noop.call()).delay(1)

    assert [job.tenant for job in run_pending()] == ["a", "a"]


def test_rest_of_a_chain_is_not_enqueued_when_a_job_fails():
    job = fail.using(max_attempts=1, on_success=noop.call()).delay()

    assert [ran.state for ran in run_pending()] == ["error"]
    assert not followers(job)


def test_follow_up_is_enqueued_once_when_a_job_succeeds_at_its_second_attempt():
    job = fail_once.using(on_success=echo.call(RESULT)).delay()

    run_pending()

    assert results(followers(job)) == [7]


@pytest.mark.parametrize("first", [add.call(1), fail.using(max_attempts=1).call()], ids=str)
def test_on_end_is_enqueued_when_a_job_has_ended_in_whatever_state(first):
    job = tell_of(first)

    *_, told = run_pending()

    failed = first.source.name == fail.name
    state = "error" if failed else "success"
    assert told.result == {"id": job.pk, "state": state, "error": failed}


def tell_of(call: Call) -> Job:
    found = {add.name: add, fail.name: fail}[call.source.name]
    return found.using(max_attempts=1, on_end=tell.call()).delay(*call.args)


# ends that are no success


def test_retry_that_succeeds_continues_the_chain():
    job = fail_at_first.using(on_success=echo.call(RESULT)).delay()
    run_pending()
    assert not followers(job)

    control.retry([job.pk])
    run_pending()

    assert results(followers(job)) == [7]


def test_cancelled_job_enqueues_what_follows_its_end_alone():
    job = add.using(on_success=noop.call(), on_end=tell.call()).delay(1)

    control.cancel([job.pk])
    run_pending()

    assert [(told.task, told.result["state"]) for told in followers(job)] == [
        ("follow_ups.tell", "cancelled")
    ]


def test_expired_job_enqueues_what_follows_its_end():
    job = add.using(expires_at=timezone.now(), on_end=tell.call()).delay(1)

    assert expire("default") == 1

    assert [told.task for told in followers(job)] == ["follow_ups.tell"]


def test_job_whose_worker_died_enqueues_what_follows_its_end():
    job = add.using(max_attempts=1, on_end=tell.call(), on_success=noop.call()).delay(1)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenantqueue_job_hot SET state = 'queued', queued_at = now(), worker_id = 77, "
            "attempt = 1 WHERE id = %s",
            [job.pk],
        )

    rescue_worker("default", 77, DeathReport("it was killed", crashed=True))

    assert Job.objects.get(pk=job.pk).state == "error"
    assert [told.task for told in followers(job)] == ["follow_ups.tell"]


def test_each_end_of_a_job_that_is_retried_is_told():
    job = fail.using(max_attempts=1, on_end=tell.call()).delay()
    run_pending()
    control.retry([job.pk])
    run_pending()

    assert [told.result["state"] for told in followers(job)] == ["error", "error"]


# options of what follows


def test_follow_up_passes_its_gates():
    later = timezone.now() + timedelta(hours=1)
    calls = [
        noop.using(session="s").call(),
        noop.using(limit_user="u").call(),
        noop.using(unique=Unique("while_executing")).call(),
        noop.using(run_at=timedelta(hours=1)).call(),
        noop.using(run_at=later, expires_at=later).call(),
        noop.using(expires_at=60).call(),
    ]
    job = add.using(tenant="a", on_success=calls).delay(1)

    run_pending()

    session, user, exclusive, delayed, timed, expiring = followers(job)
    assert (session.session_key, user.limit_user) == ("a/s", "a/u")
    assert exclusive.exclusive_key is not None
    assert [f.state for f in (session, user, exclusive)] == ["success"] * 3
    assert [f.state for f in (delayed, timed)] == ["scheduled"] * 2
    assert abs(delayed.run_at - delayed.created_at - timedelta(hours=1)) < timedelta(seconds=5)
    assert (timed.run_at, timed.expires_at) == (later, later)
    assert abs(expiring.expires_at - expiring.created_at - timedelta(minutes=1)) < timedelta(
        seconds=5
    )


def test_follow_up_waits_behind_the_head_of_its_session():
    first = noop.using(tenant="a", session="s", priority=1, run_at=3600).delay()
    job = add.using(tenant="a", on_success=noop.using(session="s").call()).delay(1)

    run_pending()

    assert [f.held_by for f in followers(job)] == ["session"]
    control.run_now([first.pk])
    run_pending()
    assert [f.state for f in followers(job)] == ["success"]


def test_follow_ups_are_enqueued_in_the_order_of_their_list():
    job = add.using(on_success=[echo.call(1), echo.call(2), echo.call(3)]).delay(1)

    run_pending()

    assert results(followers(job)) == [1, 2, 3]


def test_methods_follow_and_are_followed():
    report = Report.objects.create(title="sales")
    delayed(report, on_success=(report, "execute", (), {"kind": "pdf"})).execute()

    first, second = run_pending()

    assert [first.state, second.state] == ["success", "success"]
    assert second.args["kwargs"] == {"kind": "pdf"}


def test_task_declares_what_follows_its_jobs():
    declared.delay(2)

    assert results(run_pending()) == [2, [2]]


def test_each_job_of_a_bulk_enqueue_is_followed():
    add.using(on_success=echo.call(RESULT)).enqueue_many([(1, 1), (2, 2)])

    assert results(run_pending()) == [2, 4, 2, 4]


def test_duplicate_is_followed_by_nothing():
    given = {"unique": Unique("until_executed"), "tenant": "a"}
    add.using(**given).delay(1)

    job = add.using(**given, on_success=noop.call()).delay(1)

    assert job.duplicate
    assert len(run_pending()) == 1


def test_detail_and_callback_of_a_monitor_are_followed():
    monitor = ConcurrentJobMonitor.objects.start(
        "work",
        [add.using(on_success=echo.call(RESULT)).call(1, 2)],
        parallel=1,
        tenant="a",
        on_end=echo.using(on_success=echo.call(RESULT)).call("done"),
    )

    ran = run_pending()

    assert sorted(map(str, results(ran))) == ["3", "3", "done", "done"]
    assert {job.tenant for job in ran} == {"a"}
    assert Job.objects.filter(monitor_id=monitor.pk).count() == 2


@pytest.mark.parametrize(("scope", "lane"), [("global", 10), ("tenant", 0)])
def test_follow_up_is_in_the_lane_of_the_scope_that_holds_when_it_is_enqueued(
    settings, scope, lane
):
    given = {**settings.TENANTQUEUE, "PRIORITY_SCOPE": "tenant" if scope == "global" else "global"}
    settings.TENANTQUEUE = given
    job = add.using(on_success=noop.using(priority=10).call()).delay(1)
    settings.TENANTQUEUE = {**given, "PRIORITY_SCOPE": scope}
    relane("default")

    run_pending()

    assert [follow_up.lane for follow_up in followers(job)] == [lane]


# what could refuse it


def test_queue_that_was_retired_or_filled_meanwhile_takes_it():
    retired = make_queue("a", "retired")
    full = make_queue("a", "full", max_waiting=1)
    make_jobs(full, 1)
    calls = [noop.using(queue="retired").call(), noop.using(queue="full").call()]
    job = add.using(tenant="a", on_success=calls).delay(1)
    control.retire([retired.pk])

    run_pending()

    assert [f.state for f in followers(job)] == ["success", "success"]


def test_retired_queue_is_refused_at_the_first_enqueue():
    make_queue("a", "retired", retired=True)

    with pytest.raises(QueueRetired):
        add.using(tenant="a", on_success=noop.using(queue="retired").call()).delay(1)


def test_follow_up_of_an_erased_tenant_is_left_out():
    job = add.using(tenant="a", on_success=noop.using(tenant="b").call()).delay(1)
    TenantQueue.objects.filter(tenant="b").delete()

    run_pending()

    assert state_of(job.pk) == "success"
    assert not followers(job)


def test_unique_key_is_refused():
    call = noop.using(unique=Unique("until_executed")).call()

    with pytest.raises(InvalidOption, match="on_success: unique='until_executed'"):
        add.using(on_success=call)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "on_success is 3: "),
        ("noop", "on_success is 'noop': "),
        ([noop.call(), None], "on_success[1] is None: "),
    ],
    ids=str,
)
def test_what_is_no_call_is_refused(value, message):
    with pytest.raises(InvalidOption, match=re.escape(message)):
        add.using(on_success=value)


def test_result_is_refused_in_a_call_that_follows_nothing():
    with pytest.raises(InvalidArgument, match="is for the arguments of a call that follows"):
        echo.delay(RESULT)


def test_chain_that_is_too_large_is_refused(settings):
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "MAX_ARGUMENT_BYTES": 1000}
    call = echo.using(on_success=echo.call("x" * 500)).call("x" * 500)

    with pytest.raises(InvalidArgument, match="what follows the job is"):
        echo.using(on_success=call).delay(1)


def test_chain_that_is_nested_too_deeply_is_refused():
    call = echo.call("x")
    for _ in range(3000):
        call = echo.using(on_success=call).call("x")

    with pytest.raises(InvalidArgument, match="nested too deeply"):
        echo.using(on_success=call).delay(1)


# the result


def test_follow_up_fails_for_good_when_the_result_is_gone():
    job = add.using(on_success=echo.using(run_at=3600, max_attempts=3).call(RESULT)).delay(1, 2)
    run_pending()
    control.delete_finished([job.pk])

    (ran,) = run_pending(scheduled=True)

    assert (ran.state, ran.attempt) == ("error", 1)
    assert "does not exist any more" in ran.last_error["message"]


def test_result_in_a_cache_is_handed_on(settings):
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "RESULT_STORE": "default"}
    echo.using(on_success=echo.call(RESULT)).delay("a long text")

    assert results(run_pending()) == ["a long text", "a long text"]


def test_result_that_looks_like_a_placeholder_is_handed_on_as_it_is():
    imitation.using(on_success=echo.call(RESULT)).delay()

    assert results(run_pending()) == [{"__tenantqueue__": "job_id"}] * 2


def test_job_that_follows_none_has_no_previous_one():
    tell_none.delay()

    assert results(run_pending()) == [True]


# what is kept


def test_ended_job_keeps_of_its_follow_ups_what_a_retry_needs():
    secret = noop.using(on_end=noop.call()).call
    good = add.using(on_success=secret()).delay(1)
    bad = fail.using(max_attempts=1, on_success=secret()).delay()
    run_pending()

    ((short,), (whole,)) = (Job.objects.get(pk=job.pk).follow_ups for job in (good, bad))
    assert short["id"] == followers(good)[0].pk
    assert "args" not in short
    assert "args" in whole
    assert "id" not in whole


def test_enqueue_again_follows_the_same_job_and_is_followed_by_nothing():
    job = add.using(on_success=echo.using(on_success=noop.call()).call(RESULT)).delay(1, 2)
    run_pending()
    (second,) = followers(job)

    again = enqueue_again(second, (RESULT,), {})
    run_pending()

    assert Job.objects.get(pk=again.pk).result == 3
    assert not followers(again)


def test_downloads_name_what_follows_and_nothing_more():
    job = add.using(tenant="a", on_success=echo.call("hidden")).delay(1)

    ((_count, lines),) = export_jobs("default", "a")

    stored = json.loads(lines)["follow_ups"]
    (queue,) = TenantQueue.objects.filter(tenant="a")
    assert stored == [{"on": "success", "task": echo.name, "queue_id": queue.pk}]
    assert "hidden" in json.dumps(Job.objects.get(pk=job.pk).follow_ups)


# tests of users


def test_assertions_compare_what_follows_by_name():
    add.using(on_success=echo.call(RESULT), on_end=tell.call()).delay(1)

    assert_enqueued(add, 1, on_success=echo.call("other"), on_end=tell.call())
    with pytest.raises(AssertionError, match="on_success is"):
        assert_enqueued(add, 1, on_success=noop.call())


def test_captured_jobs_have_what_was_enqueued_by_ends():
    with captured_jobs() as jobs:
        add.using(on_success=echo.call(RESULT)).delay(1)
        run_pending()

    assert [job.task for job in jobs] == [add.name, echo.name]


@pytest.mark.parametrize("first", [add, async_add])
def test_eager_mode_runs_what_follows(first):
    seen.clear()
    with eager():
        job = first.using(tenant="a", on_success=note.call(RESULT), on_end=note.call("end")).delay(
            1, 2
        )
        assert Job.objects.count() == 0

    assert job.result == 3
    assert seen == [(3, "a", "success"), ("end", "a", "success")]


def test_eager_mode_runs_what_follows_the_end_when_the_task_fails():
    seen.clear()
    with eager(), pytest.raises(ValueError, match="it failed"):
        fail.using(on_success=note.call("then"), on_end=note.call(RESULT)).delay()

    assert seen == [(None, "", "error")]
