"""As many jobs are claimed ahead as the threads need until the next claim is answered."""

from __future__ import annotations

import pytest

from django_tenantqueue.worker.child.claim_ahead import MOST_AHEAD, ClaimAhead


def claim_ahead_of(seconds: float, *, threads: int = 1) -> ClaimAhead:
    """Return a pace that has seen enough runs of so many seconds."""
    claim_ahead = ClaimAhead(threads)
    for _ in range(ClaimAhead.ENOUGH):
        claim_ahead.observe(seconds)
    return claim_ahead


def ahead_after(answer_seconds: float, slots_left: int, *, run_seconds: float = 0.02) -> int:
    claim_ahead = claim_ahead_of(run_seconds)
    claim_ahead.answered(answer_seconds, slots_left=slots_left)
    claim_ahead.observe(run_seconds)
    return claim_ahead.ahead


def test_nothing_is_claimed_ahead_before_enough_was_seen():
    claim_ahead = ClaimAhead(1)
    for _ in range(ClaimAhead.ENOUGH - 1):
        claim_ahead.observe(0.001)

    assert claim_ahead.ahead == 0


def test_fifty_milliseconds_are_claimed_ahead_when_the_server_answers_fast():
    assert claim_ahead_of(0.01).ahead == 5
    assert claim_ahead_of(0.01, threads=4).ahead == 20
    assert ahead_after(0.004, ClaimAhead.AMPLE_SLOTS, run_seconds=0.01) == 5


@pytest.mark.parametrize(("seconds", "ahead"), [(0.1, 5), (0.16, 8), (3.0, 10)])
def test_more_is_claimed_ahead_when_the_server_answers_slowly(seconds, ahead):
    assert ahead_after(seconds, ClaimAhead.AMPLE_SLOTS) == ahead


def test_no_slots_are_held_for_it_when_a_queue_has_few_left():
    assert ahead_after(3.0, ClaimAhead.AMPLE_SLOTS - 1) == 2


def test_less_is_claimed_ahead_when_the_server_answers_fast_again():
    claim_ahead = claim_ahead_of(0.02)
    for seconds in (3.0, 0.004):
        claim_ahead.answered(seconds, slots_left=ClaimAhead.AMPLE_SLOTS)
    claim_ahead.observe(0.02)

    assert claim_ahead.ahead == 2


def test_buffer_is_bounded_when_jobs_take_no_time():
    assert ahead_after(3.0, ClaimAhead.AMPLE_SLOTS, run_seconds=0.0) == MOST_AHEAD
