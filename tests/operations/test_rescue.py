"""Which jobs of a dead worker count the attempt, and which end."""

import math
from datetime import timedelta

import pytest
from django.utils import timezone

from django_tenantqueue.models import Job, Worker
from django_tenantqueue.operations import rescue
from django_tenantqueue.operations.rescue import (
    DeadWorkerFinder,
    DeathReport,
    judge,
    rescue_worker,
)
from django_tenantqueue.queries.rescue import Held
from django_tenantqueue.states import State
from tests.factories import make_job, make_worker, state_of


def held(job_id: int, **changes) -> Held:
    columns = {"running": False, "attempt": 1, "max_attempts": 3, "crashes": 0, "cancel": False}
    return Held(id=job_id, **{**columns, **changes})


AGAIN = (False, True)
RETURNED = (False, False)
ENDED = (True, True)


NONE: frozenset[int] = frozenset()


@pytest.mark.parametrize(
    ("jobs", "death", "verdicts"),
    [
        pytest.param([held(1), held(2)], {}, [AGAIN, AGAIN], id="unknown what was begun"),
        pytest.param(
            [held(1), held(2)], {"started": frozenset({2})}, [RETURNED, AGAIN], id="one begun"
        ),
        pytest.param([held(1, running=True)], {"started": NONE}, [AGAIN], id="recorded start"),
        pytest.param([held(1, attempt=3)], {}, [ENDED], id="attempts are spent"),
        pytest.param([held(1, attempt=3)], {"started": NONE}, [RETURNED], id="last not begun"),
        pytest.param([held(1, cancel=True)], {"started": NONE}, [(True, False)], id="cancelled"),
        pytest.param(
            [held(1, running=True, attempt=3), held(2, running=True)],
            {"started": frozenset({1, 2}), "culprit": 2},
            [RETURNED, AGAIN],
            id="killed for a culprit",
        ),
        pytest.param(
            [held(1, running=True, attempt=3)], {"blameless": True}, [RETURNED], id="stopped"
        ),
        pytest.param(
            [held(1, crashes=1), held(2), held(3, crashes=1), held(4, crashes=5)],
            {"started": frozenset({1, 2, 3}), "crashed": True},
            [AGAIN, RETURNED, AGAIN, RETURNED],
            id="most crashes",
        ),
    ],
)
def test_attempt_counts_and_job_ends_by_what_is_known_of_the_death(jobs, death, verdicts):
    found = judge(jobs, DeathReport("it died", **death))

    assert {v.id: (v.ends, v.counted) for v in found} == dict(enumerate(verdicts, 1))


@pytest.mark.parametrize(
    ("job", "death", "waits"),
    [
        (held(1), {"crashed": True}, False),
        (held(1, crashes=1), {"crashed": True}, True),
        (held(1), {"culprit": 1}, True),
        (held(1, crashes=3), {}, False),
    ],
)
def test_job_waits_when_it_was_the_reason_or_crashed_again(job, death, waits):
    (verdict,) = judge([job], DeathReport("it died", **death))

    assert (verdict.delay_seconds > 0) == waits


def test_job_waits_until_others_have_begun_however_short_the_backoff_is(settings):
    settings.TENANTQUEUE = {"BACKOFF_BASE": 0.01, "BACKOFF_MAX": 0.01}

    (verdict,) = judge([held(1, crashes=1)], DeathReport("it died", crashed=True))

    assert 1.0 <= verdict.delay_seconds <= 2.0


def test_neighbour_is_spared_when_the_same_job_crashes_again_and_again():
    """A job that kills its process stands alone from its second crash on."""
    poison, neighbour = held(1, max_attempts=5), held(2, max_attempts=5)
    ends = False
    for attempt in range(1, 6):
        verdicts = {
            v.id: v for v in judge([poison, neighbour], DeathReport("it died", crashed=True))
        }
        ends = verdicts[1].ends
        counted = verdicts[neighbour.id].counted
        poison = held(1, max_attempts=5, attempt=attempt + 1, crashes=poison.crashes + 1)
        # the neighbour ends well before long: others come in its place
        neighbour = held(2 + attempt, max_attempts=5)
        assert counted == (attempt == 1)

    assert ends


@pytest.mark.django_db
def test_cancelled_neighbour_keeps_no_error_of_the_job_for_which_its_process_was_killed():
    neighbour, culprit = (make_job(state=State.RUNNING, max_attempts=1) for _ in range(2))
    Job.objects.filter(pk=neighbour.pk).update(cancel_requested_at=timezone.now())
    death = DeathReport("it ran too long", culprit=culprit.pk, crashed=True)

    rescue_worker("default", neighbour.worker_id, death)

    neighbour, culprit = Job.objects.get(pk=neighbour.pk), Job.objects.get(pk=culprit.pk)
    assert (neighbour.state, neighbour.errors, neighbour.crashes) == (State.CANCELLED, None, 0)
    assert (culprit.state, culprit.last_error["message"]) == (State.ERROR, "it ran too long")


@pytest.mark.django_db
def test_suspect_is_rescued_when_it_has_looked_dead_for_four_seconds_and_not_before():
    finder = DeadWorkerFinder()
    job = make_job(state=State.RUNNING)  # of a worker that has no row

    assert finder.seconds_to_rescue(100.0) == math.inf
    assert finder.look("default", 100.0) == 0
    assert finder.seconds_to_rescue(100.75) == pytest.approx(3.25, abs=0.2)
    assert finder.look("default", 103.9) == 0
    assert state_of(job.pk) == State.RUNNING
    assert finder.look("default", 104.2) == 1
    assert state_of(job.pk) == State.READY
    assert finder.seconds_to_rescue(104.3) == math.inf


@pytest.mark.django_db
def test_suspect_is_seen_for_the_first_time_when_it_has_given_a_sign_of_life_since(monkeypatch):
    monkeypatch.setattr(rescue, "SETTLE_SECONDS", 0.0)
    finder = DeadWorkerFinder()
    minute_ago = timezone.now() - timedelta(minutes=1)
    worker = make_worker(leased=True, heartbeat_at=minute_ago)
    job = make_job(state=State.RUNNING, worker_id=worker.pk)

    assert finder.look("default", 100.0) == 0
    Worker.objects.filter(pk=worker.pk).update(heartbeat_at=timezone.now() - timedelta(seconds=3))
    assert finder.look("default", 104.2) == 0
    assert state_of(job.pk) == State.RUNNING
    Worker.objects.filter(pk=worker.pk).update(heartbeat_at=minute_ago)
    assert finder.look("default", 108.5) == 1
    assert state_of(job.pk) == State.READY
