"""All details of a monitor, read in steps."""

from __future__ import annotations

import pytest
from django.db.models import F
from django.utils import timezone

from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.states import State
from django_tenantqueue.status.monitor_details import walk_details
from tests.factories import make_jobs, make_queue
from tests.operations.monitors import start

pytestmark = pytest.mark.django_db


def filled(each: int) -> ConcurrentJobMonitor:
    """Return a monitor with as many details of each kind, their ids mixed."""
    monitor = start([], keep_open=True)
    queue = make_queue()
    gates = {"session_key": None, "monitor_id": monitor.pk}
    for _ in range(each):
        make_jobs(queue, 1, state=State.HELD, held_by="monitor", **gates)
        make_jobs(queue, 1, state=State.SUCCESS, **gates)
        make_jobs(queue, 1, state=State.HELD, held_by="task", **gates)
        make_jobs(queue, 1, state=State.READY, **gates)
        make_jobs(queue, 1, state=State.SCHEDULED, **gates)
        make_jobs(queue, 1, state=State.ERROR, **gates)
        make_jobs(queue, 1, state=State.RUNNING, **gates)
    return monitor


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_every_detail_is_yielded_once_when_the_steps_are_small(size: int) -> None:
    monitor, other = filled(5), filled(2)

    steps = list(walk_details("default", monitor, None, size=size))

    found = [i for ids in steps for i in ids]
    assert len(found) == 35
    assert set(found) == set(monitor.details().values_list("pk", flat=True))
    assert not set(found) & set(other.details().values_list("pk", flat=True))
    assert max(map(len, steps)) <= 3 * size


@pytest.mark.parametrize(
    ("part", "columns"),
    [
        ("in_line", {"held_by": "monitor"}),
        ("aside", {"held_by": "task"}),
        ("ready", {"state": "ready"}),
        ("retrying", {"state": "scheduled"}),
        ("running", {"state": "running"}),
        ("failed", {"state": "error"}),
        ("cancelled", {"state": "cancelled"}),
        ("done", {"state": "success"}),
    ],
)
def test_details_of_one_part_are_yielded(part: str, columns: dict[str, str]) -> None:
    monitor = filled(4)

    found = [i for ids in walk_details("default", monitor, part, size=3) for i in ids]

    assert sorted(found) == list(
        monitor.details().filter(**columns).order_by("pk").values_list("pk", flat=True)
    )


def test_detail_is_yielded_once_when_it_ends_meanwhile() -> None:
    monitor = filled(3)
    walk = walk_details("default", monitor, None, size=50)

    first = next(walk)
    ended = Job.objects.filter(pk=first[0])
    ended.update(
        final=True,
        state=State.SUCCESS,
        held_by=None,
        finished_at=timezone.now(),
        attempt=F("max_attempts"),
    )
    found = [*first, *(i for ids in walk for i in ids)]

    assert len(found) == len(set(found)) == 21


def test_details_that_end_at_the_same_time_are_not_passed_over() -> None:
    monitor = start([], keep_open=True)
    moment = timezone.now()
    ids = make_jobs(
        make_queue(), 10, state=State.SUCCESS, finished_at=moment, monitor_id=monitor.pk
    )

    steps = list(walk_details("default", monitor, "done", size=3))

    assert [i for step in steps for i in step] == ids[::-1]
    assert list(map(len, steps)) == [3, 3, 3, 1]
