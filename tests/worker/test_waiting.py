"""Waiting for the database and other threads, however many files the process has open."""

from __future__ import annotations

import fcntl
import os
import resource
import time

import pytest

from django_tenantqueue.worker import waiting as module
from django_tenantqueue.worker.waiting import FD_SETSIZE, Waiter, pipe
from tests.timing import assert_within

SECONDS = 10.0


@pytest.fixture(params=[0, FD_SETSIZE], ids=["few files", "many files"])
def waiting(request, monkeypatch):
    """Yield a waiter and a pipe whose file descriptors have this number at least."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = FD_SETSIZE + 100
    if soft != resource.RLIM_INFINITY and soft < least:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))

    def moved() -> tuple[int, int]:
        low = pipe()
        high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, request.param) for end in low)
        for end in low:
            os.close(end)
        return high

    monkeypatch.setattr(module, "pipe", moved)
    made, ends = Waiter(), moved()
    yield made, *ends
    made.close()
    for end in ends:
        os.close(end)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_wait_ends_when_the_socket_can_be_read(waiting):
    made, read, write = waiting
    os.write(write, b"x")

    assert made.wait(SECONDS, read)


def test_wait_ends_when_it_was_woken_before(waiting):
    made, read, _ = waiting
    made.wake()
    began = time.monotonic()

    assert not made.wait(SECONDS, read)
    assert_within(SECONDS / 2, time.monotonic() - began)


def test_wait_ends_in_time_when_nothing_comes(waiting):
    made, read, _ = waiting
    began = time.monotonic()

    assert not made.wait(0.01, read)
    assert time.monotonic() - began >= 0.009
