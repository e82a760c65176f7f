"""What a child and its supervisor share."""

import os
import signal
import time
import warnings

import pytest

from django_tenantqueue.worker.child import Child
from django_tenantqueue.worker.guard import explain_death
from django_tenantqueue.worker.marks import Marks, Why


def begun(marks: Marks, job_id: int, limit: float | None = None) -> int:
    place = marks.reserve(job_id)
    marks.begin(place, job_id, limit)
    return place


def test_job_is_not_marked_when_it_is_reserved():
    marks = Marks(2)

    marks.reserve(7)

    assert marks.begun() == []


def test_mark_tells_start_and_limit_when_a_job_begins():
    marks = Marks(2)
    before = time.monotonic()

    begun(marks, 7, 5.0)

    (mark,) = marks.begun()
    assert (mark.job_id, mark.why) == (7, Why.TIME)
    assert before <= mark.begun_at <= time.monotonic()
    assert mark.limit_at == pytest.approx(mark.begun_at + 5.0, abs=0.001)


def test_limit_is_lifted_and_the_mark_stays_when_the_job_ends():
    marks = Marks(2)
    place = begun(marks, 7, 5.0)

    marks.end(place)

    assert [(mark.job_id, mark.limit_at) for mark in marks.begun()] == [(7, None)]


def test_mark_is_gone_when_it_is_cleared():
    marks = Marks(1)
    begun(marks, 7, 5.0)

    marks.clear(7)

    assert marks.begun() == []
    assert marks.reserve(8) >= 0


def test_sleep_is_told_until_the_child_wakes():
    marks = Marks(1)
    assert marks.sleep_number == 0

    marks.sleep(3)
    assert marks.sleep_number == 3
    marks.sleep(0)

    assert marks.sleep_number == 0


def test_sooner_limit_counts_when_there_are_two():
    marks = Marks(2)
    begun(marks, 7, 5.0)
    begun(marks, 8, 0.5)

    marks.limit(7, 1.0, Why.CANCEL)
    marks.limit(8, 1.0, Why.CANCEL)

    assert [mark.why for mark in sorted(marks.begun(), key=lambda m: m.job_id)] == [
        Why.CANCEL,
        Why.TIME,
    ]


def test_nothing_is_written_when_there_is_no_place_left():
    marks = Marks(1)
    begun(marks, 7)

    begun(marks, 8)

    assert [mark.job_id for mark in marks.begun()] == [7]


def test_parent_sees_what_a_child_wrote():
    marks = Marks(1)
    with warnings.catch_warnings():
        # the test runner may have threads; the child does not wait for any lock of theirs
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        begun(marks, 7, 1.0)
        marks.retire()
        os._exit(0)
    os.waitpid(pid, 0)

    assert [mark.job_id for mark in marks.begun()] == [7]
    assert marks.is_retiring


@pytest.mark.parametrize("status", [0, 70 << 8, signal.SIGKILL])
def test_nothing_is_held_against_the_jobs_when_their_process_was_leaving(status):
    marks = Marks(2)
    begun(marks, 7)
    child = Child(1, 0, 1, marks)
    assert not explain_death(child, status).blameless

    marks.leave()

    assert explain_death(child, status).blameless
