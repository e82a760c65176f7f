"""What follows a job: enqueued by its end, in the same transaction, once."""

from __future__ import annotations

import pytest

from django_tenantqueue import Placeholder, current_job, task
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending
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


def followers(job: Job) -> list[Job]:
    return list(Job.objects.filter(previous_id=job.pk).order_by("pk"))


def results(jobs: list[Job]) -> list[object]:
    return [job.result for job in jobs]


def test_follow_up_is_enqueued_with_the_result_when_a_job_has_succeeded():
    job = add.using(then=echo.call(RESULT)).delay(1, 2)
    assert Job.objects.count() == 1

    assert results(run_pending()) == [3, 3]
    assert followers(job)[0].previous_id == job.pk


@pytest.mark.parametrize("first", [async_add, add_atomically], ids=["coroutine", "atomic"])
def test_follow_up_is_enqueued_when_another_kind_of_task_has_succeeded(first):
    first.using(then=async_add.call(RESULT, second=1)).delay(1, 2)

    assert results(run_pending()) == [3, 4]


def test_links_of_a_chain_run_one_after_another_with_their_own_options():
    last = echo.using(tenant="c", queue="mail", session="s", max_attempts=7).call(RESULT)
    middle = add.using(tenant="b", priority=10, then=last).call(RESULT, 10)

    add.using(tenant="a", created_by="eve", then=middle).delay(1, 2)
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
    add.using(tenant="a", then=noop.call()).delay(1)

    assert [job.tenant for job in run_pending()] == ["a", "a"]


def test_rest_of_a_chain_is_not_enqueued_when_a_job_fails():
    job = fail.using(max_attempts=1, then=noop.call()).delay()

    assert [ran.state for ran in run_pending()] == ["error"]
    assert not followers(job)


def test_follow_up_is_enqueued_once_when_a_job_succeeds_at_its_second_attempt():
    job = fail_once.using(then=echo.call(RESULT)).delay()

    run_pending()

    assert results(followers(job)) == [7]


@pytest.mark.parametrize("first", [add.call(1), fail.using(max_attempts=1).call()], ids=str)
def test_on_end_is_enqueued_when_a_job_has_ended_in_whatever_state(first):
    job = tell_of(first)

    *_, told = run_pending()

    failed = first.source.name == fail.name
    state = "error" if failed else "success"
    assert told.result == {"id": job.pk, "state": state, "error": failed}


def tell_of(call) -> Job:
    found = {add.name: add, fail.name: fail}[call.source.name]
    return found.using(max_attempts=1, on_end=tell.call()).delay(*call.args)
