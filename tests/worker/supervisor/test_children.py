"""What a supervisor knows of its children without asking the database."""

from __future__ import annotations

import time

import pytest

from django_tenantqueue.worker import shared_memory as module
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.shared_memory import SharedMemory
from django_tenantqueue.worker.supervisor.child import Child
from django_tenantqueue.worker.supervisor.children import DEAF_SECONDS, Children
from django_tenantqueue.worker.supervisor.lease import Lease


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
        made._by_pid[pid] = Child(pid, pid, pid, SharedMemory(1))
        made._by_pid[pid].shared_memory.sleep(1)
    made.sleep_on()
    return made


def test_children_sleep_on_when_nothing_has_happened(children):
    assert children.sleep_on()
    assert children.sleep_on()


def test_children_do_not_sleep_on_when_one_is_awake(children):
    children._by_pid[102].shared_memory.sleep(0)

    assert not children.sleep_on()
    assert not children.sleep_on()


def test_children_do_not_sleep_on_when_one_was_awake_and_sleeps_again(children):
    children._by_pid[102].shared_memory.sleep(2)

    assert not children.sleep_on()
    assert children.sleep_on()


def test_children_do_not_sleep_on_when_another_has_taken_the_place_of_one(children):
    del children._by_pid[102]
    children._by_pid[103] = Child(103, 102, 103, SharedMemory(1))
    children._by_pid[103].shared_memory.sleep(1)

    assert not children.sleep_on()


def test_children_do_not_sleep_on_when_one_may_not_hear(children, monkeypatch):
    children._by_pid[101].shared_memory.turn()
    late = time.monotonic_ns() + int((DEAF_SECONDS + 0.5) * 1e9)
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: late)
    children._by_pid[102].shared_memory.turn()

    assert not children.sleep_on()
    children._by_pid[101].shared_memory.turn()
    assert children.sleep_on()
