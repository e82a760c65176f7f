"""What a supervisor knows of its children without asking the database."""

from __future__ import annotations

import time

import pytest

from django_tenantqueue.worker import marks as module
from django_tenantqueue.worker.child import Child
from django_tenantqueue.worker.children import DEAF_SECONDS, Children
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.lease import Lease
from django_tenantqueue.worker.marks import Marks


@pytest.fixture
def children():
    """Return two children, asleep since the last call of sleep_on()."""
    made = Children(
        WorkerConfig("default", "test"),
        Lease("default", "test"),
        say=lambda text: None,
        in_child=lambda: None,
    )
    for pid in (101, 102):
        made._by_pid[pid] = Child(pid, pid, pid, Marks(1))
        made._by_pid[pid].marks.sleep(1)
    made.sleep_on()
    return made


def test_children_sleep_on_when_nothing_has_happened(children):
    assert children.sleep_on()
    assert children.sleep_on()


def test_children_do_not_sleep_on_when_one_is_awake(children):
    children._by_pid[102].marks.sleep(0)

    assert not children.sleep_on()
    assert not children.sleep_on()


def test_children_do_not_sleep_on_when_one_was_awake_and_sleeps_again(children):
    children._by_pid[102].marks.sleep(2)

    assert not children.sleep_on()
    assert children.sleep_on()


def test_children_do_not_sleep_on_when_another_has_taken_the_place_of_one(children):
    del children._by_pid[102]
    children._by_pid[103] = Child(103, 102, 103, Marks(1))
    children._by_pid[103].marks.sleep(1)

    assert not children.sleep_on()


def test_children_do_not_sleep_on_when_one_may_not_hear(children, monkeypatch):
    children._by_pid[101].marks.turn()
    late = time.monotonic_ns() + int((DEAF_SECONDS + 0.5) * 1e9)
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: late)
    children._by_pid[102].marks.turn()

    assert not children.sleep_on()
    children._by_pid[101].marks.turn()
    assert children.sleep_on()
