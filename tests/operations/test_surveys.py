"""What a worker remembers of places while the server cannot clean up. No database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from django_tenantqueue.operations import surveys as module
from django_tenantqueue.operations.places import Places
from django_tenantqueue.operations.surveys import Surveys
from django_tenantqueue.queries.claim import ClaimRequest, Look
from django_tenantqueue.queries.gates import Place
from django_tenantqueue.queries.round_trip import TURNSTILE_SECONDS
from django_tenantqueue.queries.survey import TAKEN_MARGIN_SECONDS, Survey, Taken
from tests.factories import Clock

COSTLY = module.COSTLY_ENTRIES + 1
CHEAP = module.COSTLY_ENTRIES // 5


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def surveys(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Surveys:
    """Return the memory of a worker that does not survey, without chance in its distances."""
    monkeypatch.setattr(module.random, "uniform", lambda _least, _most: 1.0)
    return Surveys(clock, Places(clock))


def survey(places: dict[Place, int] | None = None, **changes: Any) -> Survey:
    known = {(240, 1, 240): 10} if places is None else places
    return replace(Survey(known, last_id=100, awake=1, entries=COSTLY), **changes)


def look(surveys: Surveys, entries: int, taken: dict[int, Taken] | None = None) -> ClaimRequest:
    """Let a claim read so many index entries; return what the next one is told."""
    surveys.learn(ClaimRequest(1, 8, 8, at=surveys._clock()), Look(entries=entries), taken or {})
    asked = ClaimRequest(1, 8, 8)
    surveys.fill(asked)
    return asked


def begin(surveys: Surveys, places: dict[Place, int] | None = None, **changes: Any) -> None:
    surveys.surveyed(survey(places, **changes), seconds=0.05)
    assert surveys.is_active


@pytest.mark.parametrize(("entries", "is_due"), [(module.COSTLY_ENTRIES, False), (COSTLY, True)])
def test_survey_is_due_when_a_claim_was_costly(surveys, entries, is_due):
    look(surveys, entries)

    assert surveys.is_due == is_due
    assert not surveys.is_active


def test_worker_does_without_when_the_survey_finds_that_all_is_live(surveys, clock):
    look(surveys, COSTLY)

    surveys.surveyed(survey(entries=1 + CHEAP - 1), seconds=0.05)

    assert not surveys.is_active
    clock.now += module.MOST_SURVEY_SECONDS - 0.1
    look(surveys, COSTLY)
    assert not surveys.is_due
    clock.now += 0.2
    look(surveys, COSTLY)
    assert surveys.is_due


def test_worker_does_without_when_there_are_too_many_places_to_remember(surveys, clock):
    many = {(240, queue, 240): 1 for queue in range(module.MOST_PLACES)}

    surveys.surveyed(survey(many, entries=1_000_000), seconds=0.05)

    assert not surveys.is_active
    clock.now += module.MOST_SURVEY_SECONDS - 0.1
    look(surveys, COSTLY)
    assert not surveys.is_due


def test_worker_does_without_again_when_a_survey_shows_that_the_server_has_cleaned_up(surveys):
    begin(surveys)

    surveys.surveyed(survey(entries=5), seconds=0.01)

    assert not surveys.is_active


def test_second_survey_follows_soon_and_the_others_at_a_distance_by_cost_and_workers(
    surveys, clock
):
    begin(surveys, awake=4)
    assert not surveys.is_due
    clock.now += module.LEAST_SURVEY_SECONDS
    assert surveys.is_due

    surveys.surveyed(survey(awake=4), seconds=0.05)
    clock.now += 1.9  # 4 workers, 50 ms each, a tenth of a core: 2 s
    assert not surveys.is_due
    clock.now += 0.2
    assert surveys.is_due


@pytest.mark.parametrize(
    ("awake", "cost", "too_soon", "later"),
    [(4, 0.05, 0.7, 0.2), (100, 0.5, 199.0, 2.0)],  # workers x seconds, a quarter of a core
)
def test_survey_comes_sooner_when_a_gate_has_let_jobs_through_by_a_quarter_of_a_core(
    surveys, clock, awake, cost, too_soon, later
):
    begin(surveys, awake=awake)
    surveys.surveyed(survey(awake=awake), seconds=cost)

    surveys.hurry()

    clock.now += too_soon
    assert not surveys.is_due
    clock.now += later
    assert surveys.is_due


def test_failed_survey_is_not_repeated_at_once(surveys, clock):
    look(surveys, COSTLY)

    surveys.failed()

    clock.now += 10 * module.SURVEY_TIMEOUT - 0.1
    look(surveys, COSTLY)
    assert not surveys.is_due
    clock.now += 0.2
    assert surveys.is_due


def test_failed_survey_of_a_worker_that_surveys_is_not_repeated_whatever_hurries(surveys, clock):
    begin(surveys)
    clock.now += 1.0

    surveys.failed()
    surveys.hurry()
    surveys.announced()

    assert not surveys.is_due
    assert surveys.is_active
    clock.now += 10 * module.SURVEY_TIMEOUT
    assert surveys.is_due


def test_survey_that_fails_again_may_take_longer_until_one_succeeds(surveys):
    timeouts = []
    for _ in range(7):
        timeouts.append(surveys.timeout)
        surveys.failed()

    assert timeouts == [2, 4, 8, 16, 32, 60, 60]
    begin(surveys)
    assert surveys.timeout == 2


def test_worker_that_does_not_survey_is_not_hurried_to_survey(surveys, clock):
    begin(surveys)
    surveys.leave()

    surveys.hurry()
    surveys.announced()

    look(surveys, COSTLY)
    assert not surveys.is_due


def test_counts_are_believed_for_less_time_than_the_clock_may_be_set_back(surveys, clock):
    begin(surveys)
    look(surveys, 0, {1: Taken(since=5, as_of=20)})

    clock.now += TAKEN_MARGIN_SECONDS - TURNSTILE_SECONDS - 1.1
    assert look(surveys, 0).taken == {1: Taken(since=5, as_of=20)}
    clock.now += 0.2
    assert look(surveys, 0).taken == {}


def test_worker_pauses_until_it_may_sleep(surveys, clock):
    begin(surveys, awake=4)
    surveys.surveyed(survey(awake=4), seconds=0.05)
    assert surveys.most_pause is None  # it may announce its first sleep at once
    surveys.announced()
    assert surveys.is_due

    assert surveys.most_pause == pytest.approx(0.2)  # a tenth of the time between surveys
    clock.now += 2.0  # when the next survey might come, too
    assert surveys.most_pause is None


def test_worker_of_a_large_fleet_pauses_no_longer_than_that_of_a_small_one(surveys):
    begin(surveys, awake=100)
    surveys.surveyed(survey(awake=100), seconds=0.5)
    surveys.announced()

    assert surveys.most_pause == pytest.approx(module.MOST_SURVEY_SECONDS / 10)


def test_worker_that_does_not_survey_never_pauses(surveys):
    surveys.announced()

    assert surveys.most_pause is None
