"""What a worker remembers of places between two claims. No database."""

from __future__ import annotations

from typing import Any

import pytest

from django_tenantqueue.operations.places import (
    BLOCKED_SECONDS,
    EDIT_SECONDS,
    FEW_STEPS,
    FOREIGN_SECONDS,
    MORE_STEPS,
    MOST_STEPS,
    Places,
)
from django_tenantqueue.queries.claim import ClaimRequest, Look, Status
from django_tenantqueue.queries.claim import Sight as Seen
from django_tenantqueue.queries.gates import Place
from django_tenantqueue.queries.survey import FIRST_PLACE, Survey
from tests.factories import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def places(clock: Clock) -> Places:
    return Places(clock)


def at(queue_id: int, lane: int = 240) -> Place:
    return (lane, queue_id, lane)


def ask(places: Places, *, goes_on: bool = False, **changes: Any) -> ClaimRequest:
    """Return what the next claim is told."""
    request = ClaimRequest(1, 8, 8, **changes)
    places.fill(request, goes_on=goes_on)
    return request


def look(
    places: Places,
    seen: dict[Place, tuple[Status, int | None]],
    *,
    goes_on: bool = False,
    **more: Any,
) -> ClaimRequest:
    """Let a claim see that; return what it was told."""
    request = ask(places, goes_on=goes_on)
    sights = [
        Seen(status, place, first_id, status is Status.OPEN)
        for place, (status, first_id) in seen.items()
    ]
    places.learn(request, Look(sights=sights, **{"is_pass": False, "steps": {at(1): 10}, **more}))
    return request


def search(places: Places, count: int, status: Status = Status.OPEN, **more: Any) -> None:
    """Let a pass find so many queues."""
    found = {at(queue_id): 10 * queue_id for queue_id in range(1, count + 1)}
    seen = {place: (status, first_id) for place, first_id in found.items()}
    look(places, seen, steps=found, is_pass=True, **more)


def survey(places: Places, found: dict[Place, int], last_id: int = 100) -> None:
    places.survey(Survey(found, last_id=last_id, awake=1, entries=9999))


def test_all_places_are_searched_without_a_pause_when_the_worker_begins(places):
    found = {at(queue_id): 1 for queue_id in range(1, MOST_STEPS + 1)}

    first = look(places, {}, steps=found)
    second = look(places, {}, steps={}, is_pass=True, goes_on=True)

    assert (first.cursor, first.most_steps) == (FIRST_PLACE, MOST_STEPS)
    assert (second.cursor, second.most_steps) == (at(MOST_STEPS), MOST_STEPS)
    assert not places.is_searching
    assert ask(places).most_steps == FEW_STEPS


def test_claim_is_given_the_open_places_in_turn_when_there_are_many(places):
    search(places, 40)
    places.add(at(7, lane=120), 5)
    places.block(33)

    request = ask(places, starts={240: 30}, most_locks=5)

    assert [place[:2] for place in request.known] == [
        (120, 7),
        *((240, queue_id) for queue_id in (31, 32, 34, 35, 36, 37, 38, 39, 40)),
        *((240, queue_id) for queue_id in range(1, FEW_STEPS + 1)),
    ]


def test_turns_come_round_when_few_places_are_left(places):
    search(places, 20)

    request = ask(places, starts={240: 18}, most_locks=3)

    assert [place[1] for place in request.known] == [19, 20, *range(1, 19)]


def test_more_steps_follow_a_pause(places, clock):
    search(places, 40)
    assert ask(places).most_steps == FEW_STEPS
    clock.now += 1.0
    assert ask(places).most_steps == MORE_STEPS


def test_place_is_forgotten_when_nothing_is_left_there(places):
    search(places, 20)

    look(places, {at(3): (Status.EMPTY, None)})

    assert at(3) not in ask(places, most_locks=50).known


def test_places_that_a_whole_pass_does_not_see_are_forgotten(places):
    search(places, 20)

    search(places, 2)

    assert not places.has_blocked
    assert len(places._known) == 2


def test_blocked_queue_is_left_alone_for_a_quarter_second(places, clock):
    search(places, 20, Status.BLOCKED)
    assert not places.has_open
    assert places.has_blocked
    assert places.wait_seconds == BLOCKED_SECONDS
    clock.now += BLOCKED_SECONDS

    assert len(ask(places, most_locks=50).known) == 20


def test_some_of_many_blocked_queues_are_looked_at_again_by_each_claim(places, clock):
    search(places, 3 * MORE_STEPS, Status.BLOCKED)
    clock.now += BLOCKED_SECONDS

    request = ask(places, most_locks=200)

    assert len(request.known) == MORE_STEPS
    assert places.has_blocked


def test_blocked_queue_is_open_when_one_of_its_jobs_finishes_here(places):
    search(places, MORE_STEPS + 1, Status.BLOCKED)

    places.finished(7)

    assert list(ask(places).known) == [at(7)]


def test_queue_that_waits_for_its_rate_is_not_open_when_one_of_its_jobs_finishes(places, clock):
    search(places, 20, Status.SPENT, spent_seconds=dict.fromkeys(range(1, 21), 0.1))
    assert places.wait_seconds == pytest.approx(0.1)

    places.finished(7)

    assert not places.has_open
    clock.now += 0.1
    assert len(ask(places, most_locks=50).known) == 20


def test_contended_queues_are_left_alone_until_the_search_is_over(places):
    places.learn(
        ask(places),
        Look(
            sights=[Seen(Status.OPEN, at(queue_id), 1, False) for queue_id in (1, 2)],
            steps={at(2): 1},
            is_pass=False,
        ),
    )

    assert sorted(ask(places, goes_on=True).skip_queues) == [1, 2]
    assert places.has_contended
    assert ask(places).skip_queues == []
    assert not places.has_contended


def test_queues_that_fitted_no_room_are_open_when_there_is_room_of_both_kinds(places):
    search(places, 20)
    places.rest_barren(3, is_misfit=True)
    places.rest_barren(4, is_misfit=False)

    one_kind = ClaimRequest(1, 8, 0, most_locks=50)
    places.fill(one_kind)

    assert {3, 4}.isdisjoint(place[1] for place in one_kind.known)
    assert at(3) in ask(places, most_locks=50).known


def test_queues_of_others_are_nothing_to_wait_for(places, clock):
    search(places, 20, Status.FOREIGN)

    assert not places.has_blocked
    assert len(ask(places).skip_queues) == 20
    places.take({at(3): 30})
    assert not places.has_open
    clock.now += FOREIGN_SECONDS
    assert ask(places).skip_queues == []


def test_queues_of_others_stay_ignored_when_a_survey_finds_them(places):
    search(places, 3, Status.FOREIGN)

    survey(places, {at(2): 30, at(4): 40})
    survey(places, {at(4): 40})

    assert ask(places).known == {at(4): 40}


def test_blocked_queues_are_looked_at_when_the_worker_is_notified_if_they_are_few(places):
    search(places, FEW_STEPS, Status.BLOCKED)
    places.notified()
    assert len(ask(places, most_locks=50).known) == FEW_STEPS

    search(places, FEW_STEPS + 1, Status.BLOCKED)
    places.notified()
    assert not places.has_open


def test_search_goes_on_from_where_it_is_when_the_blocked_are_forgotten_again(places):
    look(places, {}, steps={at(queue_id): 1 for queue_id in range(1, MOST_STEPS + 1)})

    places.forget_blocked()

    assert ask(places).cursor == at(MOST_STEPS)


def test_ids_are_looked_at_again_until_they_are_a_second_old(places, clock):
    search(places, 40, last_arrival=100)
    for seconds, last_id, after in (
        (0.5, 150, 100),
        (0.6, 200, 100),
        (0.0, 200, 100),
        (0.5, 200, 100),
        (0.0, 200, 150),
        (0.7, 200, 150),
        (0.0, 200, 200),
    ):
        clock.now += seconds
        assert look(places, {}, last_arrival=last_id).arrivals_after == after


def test_ids_that_a_claim_found_after_its_wait_in_line_are_as_young_as_that(places, clock):
    search(places, 40, last_arrival=100)
    request = ask(places)
    clock.now += 2.5  # in line
    places.learn(request, Look(last_arrival=150))

    look(places, {}, last_arrival=160)

    assert ask(places).arrivals_after == 100


def test_ids_are_looked_at_from_the_start_when_the_sequence_was_set_back(places):
    search(places, 40, last_arrival=100)

    look(places, {}, last_arrival=7)

    assert ask(places).arrivals_after == 7


def test_claims_start_from_the_least_ids_after_a_survey(places):
    survey(places, {at(1): 10, at(2, lane=120): 30})

    request = ask(places)

    assert request.by_ids
    assert request.most_steps == 0
    assert request.known == {at(2, lane=120): 30, at(1): 10}
    assert request.arrivals_after == 100


def test_place_moves_on_to_its_first_job_after_a_survey(places):
    survey(places, {at(1): 10, at(2): 30})

    look(places, {at(1): (Status.OPEN, 55), at(2): (Status.EMPTY, None), at(3): (Status.OPEN, 140)})

    assert ask(places).known == {at(1): 55, at(3): 140}


def test_place_does_not_move_when_only_its_last_jobs_were_looked_at(places):
    survey(places, {at(1): 10})
    places.block(1)

    look(places, {at(1): (Status.BLOCKED, 100)})

    assert places._known == {at(1): 10}


def test_jobs_that_a_gate_let_through_are_looked_for_where_they_are(places):
    survey(places, {at(1): 50})

    places.take({at(1): 7, at(2): 9})

    assert ask(places).known == {at(1): 7, at(2): 9}


def test_place_whose_first_new_job_is_unknown_is_read_from_the_last_survey_on(places, clock):
    survey(places, {}, last_id=100)
    clock.now += 2.0
    survey(places, {}, last_id=5_000)

    look(places, {}, steps={}, arrivals={at(1): 0, at(2): 6_000}, last_arrival=6_001)

    # ids that were given a second before the survey belong to jobs that it has seen
    assert ask(places).known == {at(1): 100, at(2): 6_000}


def test_all_ids_are_read_again_when_surveys_have_ended(places):
    survey(places, {at(1): 50})

    places.read_all()

    request = ask(places)
    assert not request.by_ids
    assert request.known == {at(1): 0}
    assert request.most_steps == MOST_STEPS


def test_all_blocked_queues_are_looked_at_when_a_queue_was_edited(places, clock):
    search(places, 3 * MORE_STEPS, Status.BLOCKED, edits=7)
    look(places, {}, edits=7)
    assert not places.has_open

    look(places, {}, edits=8)

    assert places.is_searching
    assert len(ask(places, most_locks=200).known) == 3 * MORE_STEPS


def test_edits_are_followed_by_a_search_now_and_then_only(places, clock):
    search(places, 3 * MORE_STEPS, Status.BLOCKED, edits=7)
    look(places, {}, edits=8)
    search(places, 3 * MORE_STEPS, Status.BLOCKED, edits=9)
    assert not places.is_searching

    clock.now += EDIT_SECONDS
    look(places, {}, edits=9)

    assert places.is_searching
