"""What a child and its supervisor share."""

import os
import signal
import time
import warnings

import pytest

from django_tenantqueue.worker.shared_memory import SharedMemory, Why
from django_tenantqueue.worker.supervisor.child import Child
from django_tenantqueue.worker.supervisor.kill_limits import explain_death


def begun(shared_memory: SharedMemory, job_id: int, limit: float | None = None) -> int:
    place = shared_memory.reserve(job_id)
    shared_memory.begin(place, job_id, limit)
    return place


def test_job_is_not_marked_when_it_is_reserved():
    shared_memory = SharedMemory(2)

    shared_memory.reserve(7)

    assert shared_memory.begun() == []


def test_mark_tells_start_and_limit_when_a_job_begins():
    shared_memory = SharedMemory(2)
    before = time.monotonic()

    begun(shared_memory, 7, 5.0)

    (begun_job,) = shared_memory.begun()
    assert (begun_job.job_id, begun_job.why) == (7, Why.TIME)
    assert before <= begun_job.begun_at <= time.monotonic()
    assert begun_job.limit_at == pytest.approx(begun_job.begun_at + 5.0, abs=0.001)


def test_limit_is_lifted_and_the_mark_stays_when_the_job_ends():
    shared_memory = SharedMemory(2)
    place = begun(shared_memory, 7, 5.0)

    shared_memory.end(place)

    assert [(begun_job.job_id, begun_job.limit_at) for begun_job in shared_memory.begun()] == [
        (7, None)
    ]


def test_mark_is_gone_when_it_is_cleared():
    shared_memory = SharedMemory(1)
    begun(shared_memory, 7, 5.0)

    shared_memory.clear(7)

    assert shared_memory.begun() == []
    assert shared_memory.reserve(8) >= 0


def test_sooner_limit_counts_when_there_are_two():
    shared_memory = SharedMemory(2)
    begun(shared_memory, 7, 5.0)
    begun(shared_memory, 8, 0.5)

    shared_memory.limit(7, 1.0, Why.CANCEL)
    shared_memory.limit(8, 1.0, Why.CANCEL)

    assert [
        begun_job.why for begun_job in sorted(shared_memory.begun(), key=lambda m: m.job_id)
    ] == [Why.CANCEL, Why.TIME]


def test_nothing_is_written_when_there_is_no_place_left():
    shared_memory = SharedMemory(1)
    begun(shared_memory, 7)

    begun(shared_memory, 8)

    assert [begun_job.job_id for begun_job in shared_memory.begun()] == [7]


def test_parent_sees_what_a_child_wrote():
    shared_memory = SharedMemory(1)
    with warnings.catch_warnings():
        # the test runner may have threads; the child does not wait for any lock of theirs
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        begun(shared_memory, 7, 1.0)
        shared_memory.retire()
        os._exit(0)
    os.waitpid(pid, 0)

    assert [begun_job.job_id for begun_job in shared_memory.begun()] == [7]
    assert shared_memory.is_retiring


@pytest.mark.parametrize("status", [0, 70 << 8, signal.SIGKILL])
def test_nothing_is_held_against_the_jobs_when_their_process_was_leaving(status):
    shared_memory = SharedMemory(2)
    begun(shared_memory, 7)
    child = Child(1, 0, 1, shared_memory)
    assert not explain_death(child, status).blameless

    shared_memory.leave()

    assert explain_death(child, status).blameless
