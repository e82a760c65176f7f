"""Two requests with one Idempotency-Key at the same time."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction

from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.idempotency import Answer, do_once
from django_tenantqueue.contrib.api.models import IdempotencyKey
from django_tenantqueue.models import Job
from tests.process.workers import wait_until
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db(transaction=True)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
    "AND query LIKE '%tenantqueue_idempotencykey%' AND pid <> pg_backend_pid()"
)


def someone_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("fails", [False, True])
def test_second_request_waits_for_the_first(threads: Any, fails: bool) -> None:
    token, _secret = make_token("t", tenant="acme")
    inside, go = threading.Event(), threading.Event()

    def first() -> Answer:
        job = noop.using(tenant="acme").delay()
        inside.set()
        assert go.wait(20)
        if fails:
            raise ValueError("the first request fails")
        return Answer(201, {"id": job.pk})

    def second() -> Answer:
        return Answer(201, {"id": noop.using(tenant="acme").delay().pk})

    def ask(act: Any) -> Answer | None:
        try:
            return do_once("default", token, "acme", "key", "digest", act)
        except ValueError:
            return None

    one = threads.start(lambda: ask(first))
    assert inside.wait(20)
    other = threads.start(lambda: ask(second))
    wait_until(someone_waits)
    go.set()

    answers = [one.result(20), other.result(20)]
    job = Job.objects.get()
    assert answers[1] is not None
    assert answers[1].body == {"id": job.pk}
    assert (answers[0] is None) is fails


def test_nothing_is_left_when_the_caller_rolls_back() -> None:
    token, _secret = make_token("t", tenant="acme")
    with transaction.atomic():
        do_once("default", token, "acme", "key", "digest", lambda: Answer(201, {}))
        transaction.set_rollback(True)

    assert not IdempotencyKey.objects.exists()
