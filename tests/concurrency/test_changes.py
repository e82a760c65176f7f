"""What an entry of the audit trail says was before, when several change the same row at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from django_tenantqueue.models import Change
from django_tenantqueue.operations import control
from django_tenantqueue.operations.monitor_control import tune_monitor
from django_tenantqueue.operations.session_control import make_user_limit
from tests.factories import cap_task, make_queue
from tests.operations.monitors import start
from tests.process.workers import wait_until
from tests.testapp.tasks import noop

from .conftest import SECONDS, Threads


def is_awaited() -> bool:
    """Whether another session waits for a row that this one has locked."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted")
        return bool(cursor.rowcount)


def queue() -> tuple[str, Callable[[int], Any]]:
    pk = make_queue(num_slots=3).pk
    return "num_slots", lambda value: control.tune_queue(pk, num_slots=value)


def monitor() -> tuple[str, Callable[[int], Any]]:
    pk = start().pk
    return "parallel", lambda value: tune_monitor(pk, parallel=value)


def cap() -> tuple[str, Callable[[int], Any]]:
    make_user_limit("acme", "eve", num_slots=3)
    return "num_slots", lambda value: make_user_limit("acme", "eve", num_slots=value)


def task() -> tuple[str, Callable[[int], Any]]:
    cap_task(noop.name, 3)
    return "num_slots", lambda value: cap_task(noop.name, value)


@pytest.mark.parametrize("prepare", [queue, monitor, cap, task])
def test_second_of_two_edits_names_the_value_of_the_first(
    threads: Threads, prepare: Callable[[], tuple[str, Callable[[int], Any]]]
) -> None:
    column, tune = prepare()
    Change.objects.all().delete()

    with transaction.atomic():
        tune(5)
        second = threads.start(tune, 7)
        wait_until(is_awaited, what="the other waits")
    second.result(SECONDS)

    found = Change.objects.order_by("pk")
    assert [(change.before[column], change.after[column]) for change in found] == [(3, 5), (5, 7)]


def test_one_of_two_pauses_leaves_the_entry(threads: Threads) -> None:
    pk = make_queue().pk

    with transaction.atomic():
        assert control.pause([pk]) == [pk]
        second = threads.start(control.pause, [pk])
        wait_until(is_awaited, what="the other waits")

    assert second.result(SECONDS) == []
    assert Change.objects.count() == 1
