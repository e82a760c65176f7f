"""What a claimer makes of queues that a walk has passed over. No database."""

from dataclasses import replace

import pytest

from django_tenantqueue.operations.claim import Claimer, Filters, Verdict
from django_tenantqueue.queries.claim import Exchange
from tests.factories import NOTHING


def look(claimer: Claimer, **walk: object) -> Verdict:
    """Let a walk see this; return the verdict."""
    answer = Exchange(set(), set(), [], replace(NOTHING, **walk))
    return claimer.learn(claimer.request(8, 8), answer)


@pytest.fixture
def claimer() -> Claimer:
    """Return the claimer of a worker that takes some queues."""
    return Claimer(1, Filters(queues=["reports"]))


def test_queue_that_waits_for_its_rate_is_not_forgotten_beside_those_of_others(claimer):
    assert look(claimer, foreign=[7], spent={5: 0.1}) is Verdict.BLOCKED

    # the other one has nothing ready any more: the one that was passed over is the own
    assert look(claimer, skipped=1) is Verdict.BLOCKED
    assert claimer.wait_seconds <= 0.25


def test_jobs_of_others_are_nothing_to_wait_for_however_many_priorities_they_have(claimer):
    assert look(claimer, foreign=[7]) is Verdict.EMPTY

    assert look(claimer, skipped=2) is Verdict.EMPTY
