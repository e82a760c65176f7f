"""Chains under real workers: each success is followed once, whoever is killed."""

from __future__ import annotations

import signal

from django.db.models import Count

from django_tenantqueue import Placeholder
from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from tests.testapp.tasks import add, async_add, write_effect

from .test_atomic import give_back_by_hand
from .workers import Workers, wait_until

RESULT = Placeholder("result")
COUNT = 90


def test_each_success_is_followed_once_when_workers_are_killed(workers: Workers, database_url: str):
    last = write_effect.using(tenant="c", max_attempts=30).call(RESULT)
    middle = async_add.using(tenant="b", max_attempts=30, on_success=last).call(RESULT, second=1)
    first = add.using(tenant="a", max_attempts=30, on_success=middle)
    ids = first.enqueue_many([(number, 0) for number in range(COUNT)])
    done = Job.objects.finished()
    for _ in range(2):
        runner = workers.start("--threads=4", processes=2)
        before = done.count()
        wait_until(lambda before=before: done.count() >= before + 30)
        runner.send_all(signal.SIGKILL)
        runner.end()
        give_back_by_hand(database_url)
    workers.start()

    wait_until(lambda: not Job.objects.unfinished().exists())

    assert set(done.values_list("state", flat=True)) == {State.SUCCESS}
    assert done.count() == 3 * COUNT
    links = done.exclude(previous_id=None).values("previous_id").annotate(count=Count("id"))
    assert {link["count"] for link in links} == {1}
    results = done.filter(queue__tenant="c").order_by("previous_id")
    assert sorted(job.result for job in results) == [number + 1 for number in range(COUNT)]
    assert set(done.filter(queue__tenant="a").values_list("pk", flat=True)) == set(ids)
