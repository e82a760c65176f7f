"""What a worker remembers of places while the server cannot clean up. No database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from django_tenantqueue.operations import recall as module
from django_tenantqueue.operations.claim import Claimer, Verdict
from django_tenantqueue.operations.recall import Recall
from django_tenantqueue.queries.claim import LINE_SECONDS, Exchange, Position
from django_tenantqueue.queries.recall import TAKEN_MARGIN_SECONDS, Places, Survey, Taken
from tests.factories import NOTHING, Clock

COSTLY = module.COSTLY_ENTRIES + 1


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands."""
    return Clock()


@pytest.fixture
def recall(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Recall:
    """Return the memory of a worker that walks, without chance in its distances."""
    monkeypatch.setattr(module.random, "uniform", lambda _least, _most: 1.0)
    monkeypatch.setattr(module, "FIRST_IDS", 0)
    return Recall(clock)


def survey(floors: dict[Any, int] | None = None, **changes: Any) -> Survey:
    known = {(240, 1, 240): 10} if floors is None else floors
    return replace(Survey(known, last_id=100, awake=1, walked=COSTLY), **changes)


def begin(recall: Recall, floors: dict[Any, int] | None = None, **changes: Any) -> None:
    recall.surveyed(survey(floors, **changes), seconds=0.05)
    assert recall.is_active


def places(recall: Recall) -> Places:
    return recall.places((), {}, 0)


def test_walk_goes_on_while_it_costs_little(recall):
    recall.walked(replace(NOTHING, walked=module.COSTLY_ENTRIES))

    assert not recall.is_survey_due
    assert not recall.is_active


def test_survey_is_due_when_a_walk_was_costly(recall):
    recall.walked(replace(NOTHING, walked=COSTLY))

    assert recall.is_survey_due
    assert not recall.is_active


def test_worker_walks_on_when_the_survey_finds_that_all_is_live(recall, clock):
    recall.walked(replace(NOTHING, walked=COSTLY))

    recall.surveyed(survey(walked=1 + module.CHEAP_ENTRIES - 1), seconds=0.05)

    assert not recall.is_active
    for seconds in (1, 2, 4, 8, 10, 10):  # not over and over
        clock.now += seconds - 0.1
        recall.walked(replace(NOTHING, walked=COSTLY))
        assert not recall.is_survey_due
        clock.now += 0.2
        recall.walked(replace(NOTHING, walked=COSTLY))
        assert recall.is_survey_due
        recall.surveyed(survey(walked=1), seconds=0.05)
        clock.now -= 0.1


def test_worker_walks_on_when_there_are_too_many_places_to_remember(recall, clock):
    many = {(240, queue, 240): 1 for queue in range(module.MOST_SPOTS)}

    recall.surveyed(survey(many, walked=1_000_000), seconds=0.05)

    assert not recall.is_active
    clock.now += module.CROWDED_SECONDS - 0.1
    recall.walked(replace(NOTHING, walked=COSTLY))
    assert not recall.is_survey_due


def test_worker_walks_again_when_a_survey_shows_that_the_server_has_cleaned_up(recall):
    begin(recall)

    recall.surveyed(survey(walked=5), seconds=0.01)

    assert not recall.is_active


def test_second_survey_follows_soon_and_the_others_at_a_distance_by_cost_and_workers(recall, clock):
    begin(recall, awake=4)
    assert not recall.is_survey_due
    clock.now += module.LEAST_SURVEY_SECONDS
    assert recall.is_survey_due

    recall.surveyed(survey(awake=4), seconds=0.05)
    clock.now += 1.9  # 4 workers, 50 ms each, a tenth of a core: 2 s
    assert not recall.is_survey_due
    clock.now += 0.2
    assert recall.is_survey_due


def test_survey_comes_sooner_when_a_gate_has_let_jobs_through(recall, clock):
    begin(recall, awake=4)
    recall.surveyed(survey(awake=4), seconds=0.05)

    recall.hurry()

    clock.now += 0.4
    assert not recall.is_survey_due
    clock.now += 0.2
    assert recall.is_survey_due


def test_places_are_those_of_the_survey_and_what_comes_behind_its_last_id(recall):
    begin(recall, {(240, 1, 240): 10, (120, 2, 120): 30})

    assert places(recall).floors == {(240, 1, 240): 10, (120, 2, 120): 30}
    assert places(recall).arrivals_from == 101


def look(recall: Recall, last_arrival: int, **changes: Any) -> int:
    """Look, with such an answer; return where the look began."""
    asked = places(recall)
    recall.learn(asked, replace(NOTHING, last_arrival=last_arrival, **changes), {})
    return asked.arrivals_from


def test_ids_are_looked_at_again_until_they_are_a_second_old(recall, clock):
    begin(recall)
    clock.now += 0.5
    assert look(recall, 150) == 101
    clock.now += 0.6
    assert look(recall, 200) == 101
    assert look(recall, 200) == 101
    clock.now += 0.5
    assert look(recall, 200) == 101
    assert look(recall, 200) == 151
    clock.now += 0.7
    assert look(recall, 200) == 151
    assert look(recall, 200) == 201


def test_ids_of_the_last_look_are_looked_at_again_however_late_the_next_one_comes(recall, clock):
    """A job with a smaller id may have been committed just after it."""
    begin(recall)
    clock.now += 0.1
    look(recall, 150)

    clock.now += 3.0

    assert look(recall, 300) == 101
    assert look(recall, 300) == 151  # what was seen a second before the last look is done with


def test_ids_that_a_claim_found_after_its_wait_in_line_are_as_young_as_that(recall, clock):
    begin(recall)
    asked = places(recall)
    clock.now += 2.5  # in line
    recall.learn(asked, replace(NOTHING, last_arrival=150), {})

    look(recall, 160)

    assert look(recall, 160) == 101


def test_worker_that_was_away_for_long_does_not_go_through_all_ids_that_passed(recall, clock):
    begin(recall)
    recall.surveyed(survey(), seconds=0.05)
    clock.now += module.AWAY_SECONDS
    assert not Recall(clock).is_survey_due

    assert look(recall, 90_000) == module.NO_ARRIVALS

    assert recall.is_survey_due
    assert look(recall, 90_000) == 90_001


def test_ids_are_looked_at_from_the_start_when_the_sequence_was_set_back(recall):
    begin(recall)

    recall.surveyed(survey(last_id=7), seconds=0.05)

    assert places(recall).arrivals_from == 8


def test_jobs_before_the_newest_are_not_forgotten_while_their_queue_is_left_alone(recall):
    begin(recall, {(240, 1, 240): 10})
    asked = recall.places([1], {}, 0)

    recall.learn(asked, replace(NOTHING, recalled={(240, 1, 240): 100}), {})

    assert places(recall).floors == {(240, 1, 240): 10}


def test_jobs_that_a_gate_let_through_are_looked_for_where_they_are(recall):
    begin(recall, {(240, 1, 240): 50})

    recall.lower({(240, 1, 240): 7, (120, 2, 120): 9})

    assert places(recall).floors == {(240, 1, 240): 7, (120, 2, 120): 9}


def test_failed_survey_is_not_repeated_at_once(recall, clock):
    recall.walked(replace(NOTHING, walked=COSTLY))

    recall.failed()

    clock.now += 10 * module.SURVEY_TIMEOUT - 0.1
    recall.walked(replace(NOTHING, walked=COSTLY))
    assert not recall.is_survey_due
    clock.now += 0.2
    assert recall.is_survey_due


def test_failed_survey_of_a_worker_that_recalls_is_not_repeated_whatever_hurries(recall, clock):
    begin(recall)
    clock.now += 1.0

    recall.failed()
    recall.hurry()
    recall.announced()
    places(recall)

    assert not recall.is_survey_due
    assert recall.is_active
    clock.now += 10 * module.SURVEY_TIMEOUT
    assert recall.is_survey_due


def test_survey_that_fails_again_may_take_longer_until_one_succeeds(recall):
    timeouts = []
    for _ in range(7):
        timeouts.append(recall.survey_timeout)
        recall.failed()

    assert timeouts == [2, 4, 8, 16, 32, 60, 60]
    begin(recall)
    assert recall.survey_timeout == 2


def test_surveys_of_all_never_take_more_than_one_core(recall, clock):
    begin(recall, awake=100)
    recall.surveyed(survey(awake=100), seconds=0.5)

    recall.hurry()

    clock.now += 49.0  # 100 workers, half a second each
    assert not recall.is_survey_due
    clock.now += 2.0
    assert recall.is_survey_due


def test_claims_after_the_first_survey_look_at_its_last_ids_too(recall, monkeypatch):
    """What was given them may be committed behind the survey's back."""
    monkeypatch.setattr(module, "FIRST_IDS", 30)

    begin(recall)

    assert places(recall).arrivals_from == 71


def test_worker_that_walks_is_not_hurried_to_survey(recall, clock):
    begin(recall)
    recall.leave(module.CROWDED_SECONDS)

    recall.hurry()
    recall.announced()

    recall.walked(replace(NOTHING, walked=COSTLY))
    assert not recall.is_survey_due


def test_claim_goes_on_behind_the_arrivals_when_there_are_more_than_it_reads(recall):
    begin(recall)

    look(recall, 2100, arrivals_cut=True)

    assert places(recall).arrivals_from == 2101


def test_place_moves_on_to_its_first_job_and_is_forgotten_when_there_is_none(recall):
    begin(recall, {(240, 1, 240): 10, (120, 2, 120): 30})
    found = {(240, 1, 240): 55, (120, 2, 120): None, (200, 3, 200): 140}

    recall.learn(places(recall), replace(NOTHING, recalled=found), {})

    assert places(recall).floors == {(240, 1, 240): 55, (200, 3, 200): 140}


def test_what_a_claim_finds_is_nothing_to_a_worker_that_walks_again(recall):
    begin(recall)
    asked = places(recall)
    recall.leave()

    recall.learn(asked, replace(NOTHING, recalled={(240, 1, 240): 55}), {1: Taken(1, 2)})
    begin(recall, {})

    assert places(recall).floors == {}
    assert places(recall).taken == {}


def test_queues_that_are_left_alone_are_withheld(recall):
    begin(recall, {(240, 1, 240): 10, (120, 2, 120): 30, (120, 1, 120): 7})

    asked = recall.places([1], {}, 0)

    assert asked.floors == {(120, 2, 120): 30}
    assert asked.withheld == 2


def test_best_places_are_looked_at_in_turn_when_there_are_too_many(recall, monkeypatch):
    monkeypatch.setattr(module, "MOST_PLACES", 3)
    begin(recall, {(240, queue, 240): queue for queue in range(1, 6)} | {(120, 9, 120): 1})

    asked = recall.places((), {240: 3}, 0)

    assert asked.is_cut
    assert list(asked.floors) == [
        (120, 9, 120),
        (240, 4, 240),
        (240, 5, 240),
    ]


def test_counts_are_believed_for_less_time_than_the_clock_may_be_set_back(recall, clock):
    begin(recall)
    recall.learn(places(recall), NOTHING, {1: Taken(since=5, as_of=20)})

    clock.now += module.TAKEN_SECONDS - 0.1
    assert places(recall).taken == {1: Taken(since=5, as_of=20)}
    clock.now += 0.2
    assert places(recall).taken == {}
    assert module.TAKEN_SECONDS + LINE_SECONDS < TAKEN_MARGIN_SECONDS


def test_worker_pauses_longer_and_longer_until_it_may_sleep(recall, clock):
    begin(recall, awake=4)
    recall.surveyed(survey(awake=4), seconds=0.05)
    assert recall.pause() is None  # it may announce its first sleep at once
    recall.announced()
    assert recall.is_survey_due

    pauses = [recall.pause() for _ in range(8)]

    assert pauses == [0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.1, 0.1]
    recall.found_work()
    assert recall.pause() == 0.002
    clock.now += 2.0  # when the next survey might come, too
    assert recall.pause() is None


def test_pauses_of_a_large_fleet_are_longer_so_that_all_of_it_looks_no_more_often(recall):
    begin(recall, awake=160)
    recall.announced()

    assert [recall.pause() for _ in range(12)][-1] == 1.0


def test_worker_that_walks_never_pauses(recall):
    recall.announced()

    assert recall.pause() is None


def test_withheld_places_are_work_that_is_blocked(clock):
    claimer = Claimer(1, clock=clock)
    begin(claimer.recall, {(240, 5, 240): 10})
    answer = Exchange(set(), set(), [], replace(NOTHING, blocked=[5]))
    assert claimer.learn(claimer.request(8, 8), answer) is Verdict.BLOCKED

    request = claimer.request(8, 8)

    assert request.places is not None
    assert request.places.floors == {}
    assert request.places.withheld == 1


def test_claim_that_recalls_begins_at_the_best_lane(clock):
    claimer = Claimer(1, clock=clock)
    unfinished = replace(NOTHING, complete=False, position=Position(240, 7, 3, False))
    claimer.learn(claimer.request(8, 8), Exchange(set(), set(), [], unfinished))
    assert claimer.request(8, 8).recheck

    begin(claimer.recall)
    request = claimer.request(8, 8)

    assert request.position == Position()
    assert not request.recheck
