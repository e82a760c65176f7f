"""Jobs with gates: who is let through, in which order, and what holds the others."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from django_tenantqueue import Serial
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.gate_keys import SESSION, gate_key
from django_tenantqueue.models import Job, Session
from django_tenantqueue.operations import control
from django_tenantqueue.operations.gates import Sweep
from django_tenantqueue.operations.session_control import tune_session
from django_tenantqueue.queries.gates import find_open
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.testapp.tasks import fail, fail_until, noop

pytestmark = pytest.mark.django_db


def states(jobs: list[Job]) -> list[str]:
    """Return the states of jobs, once what their enqueue has left for after the commit is done."""
    run_commit_hooks("default")
    return [job.refresh().state for job in jobs]


@pytest.mark.parametrize("standard_strings", ["on", "off"])
@pytest.mark.parametrize(
    ("tenant", "key"),
    [("acme", "user:7"), ("", "a"), ("a/b", "c/d"), ("a\\", "/b"), ("\\/", "a\n/b")],
)
def test_row_of_a_gate_names_tenant_and_key(tenant: str, key: str, standard_strings: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL standard_conforming_strings = {standard_strings}")
    session = Serial(key, on_failure="halt")
    fail.using(session=session, tenant=tenant, max_attempts=1).delay()
    run_commit_hooks("default")
    assert Session.objects.values_list("tenant", "key").get() == (tenant, key)
    Session.objects.all().delete()

    run_pending()  # it halts a session that has no row

    session = Session.objects.get()
    assert (session.tenant, session.key) == (tenant, key)
    assert session.halted_at is not None


def test_keys_of_two_tenants_differ_when_they_look_alike() -> None:
    assert gate_key("a/b", "c") != gate_key("a", "b/c")
    assert gate_key("a\\", "/b") != gate_key("a", "\\/b")


# sessions


def test_one_job_of_a_session_is_let_through() -> None:
    jobs = [noop.using(session="s", tenant="acme").delay() for _ in range(3)]

    assert states(jobs) == ["ready", "held", "held"]
    assert [job.held_by for job in jobs] == [None, "session", "session"]


def test_other_sessions_and_tenants_do_not_wait() -> None:
    jobs = [
        noop.using(session=session, tenant=tenant).delay()
        for session in ("s", "t")
        for tenant in ("acme", "zeta")
    ]

    assert states(jobs) == ["ready"] * 4


def test_session_runs_over_all_queues_of_its_tenant() -> None:
    jobs = [
        noop.using(session="s", tenant="acme", queue=queue).delay() for queue in ("a", "b", "a")
    ]

    assert states(jobs) == ["ready", "held", "held"]
    ended = run_pending()
    assert [job.pk for job in ended] == [job.pk for job in jobs]


def test_session_goes_by_priority_run_at_and_id() -> None:
    now = timezone.now()
    first = noop.using(session="s").delay()
    run_commit_hooks("default")
    third, second = (
        noop.using(session="s", priority=300, run_at=now - timedelta(seconds=s)).delay()
        for s in (5, 9)
    )
    fourth, fifth = Job.objects.filter(
        pk__in=noop.using(session="s", priority=301).enqueue_many([(), ()])
    ).order_by("pk")

    ended = run_pending()

    assert [job.pk for job in ended] == [job.pk for job in (first, second, third, fourth, fifth)]


def test_urgent_job_swaps_places_when_nobody_has_claimed_the_released_one() -> None:
    usual = noop.using(session="s").delay()
    assert states([usual]) == ["ready"]

    urgent = noop.using(session="s", priority=1).delay()

    assert states([usual, urgent]) == ["held", "ready"]


def test_head_that_waits_for_its_time_blocks_the_session() -> None:
    later = noop.using(session="s", run_at=timedelta(hours=1), priority=1).delay()
    ready = noop.using(session="s").delay()

    assert states([later, ready]) == ["held", "held"]
    assert run_pending() == []


def test_head_that_waits_for_its_time_is_overtaken_when_it_says_so() -> None:
    later = [
        noop.using(
            session=Serial("s", on_wait="skip"), run_at=timedelta(hours=1), priority=p
        ).delay()
        for p in (1, 2)
    ]
    ready = noop.using(session="s", priority=3).delay()

    assert states([*later, ready]) == ["held", "held", "ready"]


def in_an_hour(priority: int, on_wait: Any) -> Job:
    session = Serial("s", on_wait=on_wait)
    return noop.using(session=session, run_at=timedelta(hours=1), priority=priority).delay()


@pytest.mark.parametrize("blocking", [100, 200])
def test_job_that_waits_for_its_time_blocks_the_session_behind_one_that_is_overtaken(
    blocking: int,
) -> None:
    first = in_an_hour(100, "skip")
    second = in_an_hour(blocking, "block")
    due = [noop.using(session="s", priority=priority).delay() for priority in (300, 400)]
    run_commit_hooks("default")

    assert find_open("default", SESSION, after="", most=100, user_slots=1)[0] == set()
    assert Sweep().step("default") == 0
    assert states([first, second, *due]) == ["held"] * 4

    control.cancel([second.pk])

    assert states([first, *due]) == ["held", "ready", "held"]


def test_job_that_waits_for_its_time_blocks_none_that_is_more_urgent() -> None:
    in_an_hour(100, "skip")
    in_an_hour(300, "block")
    due = noop.using(session="s", priority=200).delay()
    connection.run_on_commit.clear()

    assert find_open("default", SESSION, after="", most=100, user_slots=1)[0] == {"/s"}
    assert Sweep().step("default") == 1
    assert states([due]) == ["ready"]


def test_session_says_for_all_whether_a_waiting_job_is_overtaken() -> None:
    waits = [in_an_hour(priority, on_wait) for priority, on_wait in ((100, "skip"), (200, "block"))]
    due = noop.using(session="s", priority=300).delay()
    run_commit_hooks("default")

    tune_session(Session.objects.get().pk, on_wait="skip")

    assert states([*waits, due]) == ["held", "held", "ready"]


def test_blocking_jobs_with_a_time_of_their_own_are_found_by_an_index() -> None:
    """Its condition, `run_at > created_at`, holds for each job that waits for its time."""
    noop.using(session="s").delay()
    noop.using(session="s").enqueue_many([()] * 3)
    waits = in_an_hour(100, "block")
    moved = noop.using(session="s").delay()
    control.change_run_at([moved.pk], timezone.now() + timedelta(hours=1))

    timed = Job.objects.filter(run_at__gt=F("created_at")).values_list("pk", flat=True)

    assert set(timed) == {waits.pk, moved.pk}


def test_sweep_leaves_sessions_alone_in_which_nothing_is_due() -> None:
    for priority in (1, 2, 2, 3):
        noop.using(
            session=Serial("s", on_wait="skip"), run_at=timedelta(hours=1), priority=priority
        ).delay()
    run_commit_hooks("default")
    look = partial(find_open, "default", SESSION, after="", most=100, user_slots=1)
    assert look()[0] == set()

    due = noop.using(session=Serial("s", on_wait="skip"), priority=2).delay()
    connection.run_on_commit.clear()

    assert look()[0] == {"/s"}
    assert Sweep().step("default") == 1
    assert states([due]) == ["ready"]


def test_head_is_let_through_by_the_sweep_when_its_time_has_come() -> None:
    later = noop.using(session="s", run_at=timedelta(hours=1)).delay()
    ready = noop.using(session="s", priority=300).delay()
    assert states([later, ready]) == ["held", "held"]
    assert Sweep().step("default") == 0
    Job.objects.filter(pk=later.pk).update(run_at=timezone.now())

    assert Sweep().step("default") == 1

    assert states([later, ready]) == ["ready", "held"]


def test_sweep_repairs_a_session_whose_release_was_missed() -> None:
    usual = noop.using(session="s").delay()
    assert states([usual]) == ["ready"]
    urgent = noop.using(session="s", priority=1).delay()
    connection.run_on_commit.clear()

    assert Sweep().step("default") == 1

    assert states([usual, urgent]) == ["held", "ready"]
    assert Sweep().step("default") == 0


def test_sweep_takes_back_what_is_inside_a_paused_session_without_a_line() -> None:
    job = noop.using(session="s").delay()
    assert states([job]) == ["ready"]
    Session.objects.update(paused=True)

    Sweep().step("default")

    assert states([job]) == ["held"]


def test_job_that_waits_after_a_rescue_is_overtaken_when_it_says_so() -> None:
    killed = noop.using(session=Serial("s", on_wait="skip")).delay()
    ready = noop.using(session="s").delay()
    assert states([killed, ready]) == ["ready", "held"]
    later = timezone.now() + timedelta(hours=1)
    Job.objects.filter(pk=killed.pk).update(state="scheduled", attempt=1, run_at=later)

    assert Sweep().step("default") == 1

    assert states([killed, ready]) == ["held", "ready"]


def test_overtaken_job_keeps_its_place_in_the_line_when_its_time_is_changed() -> None:
    overtaken = noop.using(session=Serial("s", on_wait="skip")).delay()
    runs = noop.using(session="s").delay()
    assert states([overtaken, runs]) == ["ready", "held"]
    later = timezone.now() + timedelta(hours=1)
    Job.objects.filter(pk=overtaken.pk).update(state="scheduled", attempt=1, run_at=later)
    assert Sweep().step("default") == 1
    Job.objects.filter(pk=runs.pk).update(attempt=1)

    control.change_run_at([overtaken.pk], timezone.now())

    assert states([overtaken, runs]) == ["held", "ready"]
    assert [job.pk for job in run_pending()] == [runs.pk, overtaken.pk]


def test_retrying_head_blocks_the_session() -> None:
    failing = fail_until.using(session="s").delay(2, 3600.0)
    ready = noop.using(session="s").delay()

    run_pending()

    assert states([failing, ready]) == ["scheduled", "held"]
    assert [job.pk for job in run_pending(scheduled=True)] == [failing.pk, ready.pk]


def test_retrying_head_is_overtaken_when_it_says_so() -> None:
    failing = fail_until.using(session=Serial("s", on_wait="skip")).delay(2, 3600.0)
    ready = noop.using(session="s").delay()

    run_pending()

    assert states([failing, ready]) == ["held", "success"]


def test_next_one_goes_when_the_head_has_failed() -> None:
    failing = fail.using(session="s", max_attempts=1).delay()
    ready = noop.using(session="s").delay()

    run_pending()

    assert states([failing, ready]) == ["error", "success"]


def test_session_halts_when_the_job_that_failed_says_so() -> None:
    failing = fail.using(
        session=Serial("s", on_failure="halt"), tenant="acme", max_attempts=1
    ).delay()
    ready = noop.using(session="s", tenant="acme").delay()

    run_pending()

    session = Session.objects.get()
    assert states([failing, ready]) == ["error", "held"]
    assert (session.tenant, session.key, session.halted_by) == ("acme", "s", failing.pk)


@pytest.mark.parametrize("job_says", ["continue", "halt"])
@pytest.mark.parametrize("session_says", ["", "continue", "halt"])
def test_session_says_more_than_its_jobs(job_says: Any, session_says: str) -> None:
    session = Serial("s", on_failure=job_says)
    jobs = [fail.using(session=session, max_attempts=1).delay() for _ in range(2)]
    run_commit_hooks("default")
    Session.objects.update(on_failure=session_says)

    run_pending()

    halts = (session_says or job_says) == "halt"
    assert states(jobs) == ["error", "held" if halts else "error"]


def test_cancelled_head_lets_the_next_go() -> None:
    jobs = [noop.using(session="s").delay() for _ in range(3)]
    run_commit_hooks("default")

    assert control.cancel([jobs[0].pk]) == ([jobs[0].pk], [])

    assert states(jobs) == ["cancelled", "ready", "held"]


def test_cancelled_head_halts_the_session_but_not_one_in_the_line() -> None:
    jobs = [noop.using(session=Serial("s", on_failure="halt")).delay() for _ in range(3)]
    run_commit_hooks("default")

    control.cancel([jobs[1].pk])
    assert Session.objects.get().halted_at is None
    control.cancel([jobs[0].pk])

    assert Session.objects.get().halted_by == jobs[0].pk
    assert states(jobs) == ["cancelled", "cancelled", "held"]


# users


def test_as_many_of_a_user_are_let_through_as_the_setting_says(settings) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "DEFAULT_USER_SLOTS": 2}
    jobs = [noop.using(limit_user="7").delay() for _ in range(4)]

    assert states(jobs) == ["ready", "ready", "held", "held"]
    assert len(run_pending()) == 4


def test_user_slots_come_from_the_user_then_from_all_users_of_the_tenant(settings) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "DEFAULT_USER_SLOTS": 1}
    Session.objects.create(
        kind="limit_user", tenant="acme", gate_key=gate_key("acme", ""), num_slots=3
    )
    Session.objects.create(
        kind="limit_user", tenant="acme", key="boss", gate_key=gate_key("acme", "boss"), num_slots=4
    )

    def let_through(tenant: str, user: str) -> int:
        jobs = [noop.using(limit_user=user, tenant=tenant).delay() for _ in range(6)]
        return states(jobs).count("ready")

    assert let_through("zeta", "boss") == 1
    assert let_through("acme", "any") == 3
    assert let_through("acme", "boss") == 4


def test_job_that_waits_for_its_time_takes_none_of_its_users_slots() -> None:
    later = noop.using(limit_user="7", run_at=timedelta(hours=1)).delay()
    jobs = [noop.using(limit_user="7").delay() for _ in range(3)]

    assert states([later, *jobs]) == ["scheduled", "ready", "ready", "held"]
    assert len(run_pending(scheduled=True)) == 4


def test_job_passes_its_session_and_then_its_user() -> None:
    others = [noop.using(limit_user="7").delay() for _ in range(2)]
    both = [noop.using(limit_user="7", session="s").delay() for _ in range(2)]

    assert states([*others, *both]) == ["ready", "ready", "held", "held"]
    assert [job.held_by for job in both] == ["limit_user", "session"]
    assert len(run_pending()) == 4


def test_job_comes_to_its_user_when_somebody_else_of_its_session_has_ended() -> None:
    for user in ("7", "8"):
        noop.using(limit_user=user, session="s").delay()

    assert len(run_pending()) == 2


def test_more_are_let_through_when_the_slots_are_raised_and_less_when_lowered() -> None:
    jobs = [noop.using(limit_user="7").delay() for _ in range(5)]
    assert states(jobs).count("ready") == 2

    Session.objects.update(num_slots=4)
    Sweep().step("default")
    assert states(jobs) == ["ready"] * 4 + ["held"]

    Session.objects.update(num_slots=1)
    Sweep().step("default")
    assert states(jobs) == ["ready"] + ["held"] * 4


# what operators do


def test_retried_job_takes_its_place_in_the_session_again() -> None:
    failing = fail.using(session="s", max_attempts=1, priority=1).delay()
    run_pending()
    waiting = [noop.using(session="s").delay() for _ in range(2)]
    assert states([failing, *waiting]) == ["error", "ready", "held"]

    assert control.retry([failing.pk]) == [failing.pk]

    assert states([failing, *waiting]) == ["ready", "held", "held"]


def test_priority_changes_the_place_in_the_line() -> None:
    jobs = [noop.using(session="s").delay() for _ in range(3)]
    assert states(jobs) == ["ready", "held", "held"]

    control.change_priority([jobs[2].pk], 1)

    assert states(jobs) == ["held", "held", "ready"]


def test_time_changes_the_place_in_the_line() -> None:
    jobs = [noop.using(session="s").delay() for _ in range(2)]
    run_commit_hooks("default")

    control.change_run_at([jobs[0].pk], timezone.now() + timedelta(hours=1))

    assert states(jobs) == ["held", "ready"]


def test_held_job_can_run_now() -> None:
    later = noop.using(session="s", run_at=timedelta(hours=1)).delay()
    assert states([later]) == ["held"]

    assert control.run_now([later.pk]) == [later.pk]

    assert states([later]) == ["ready"]


def test_job_of_a_session_stays_with_its_tenant() -> None:
    job = noop.using(session="s", tenant="acme").delay()
    plain = noop.using(tenant="acme").delay()

    assert control.change_queue([job.pk, plain.pk], tenant="zeta", queue="other") == [plain.pk]
    assert control.change_queue([job.pk], tenant="acme", queue="other") == [job.pk]


# input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"session": ""}, "session='': it must be from 1 to 200 characters long"),
        ({"session": "x" * 201}, "from 1 to 200"),
        ({"limit_user": 1.5}, "limit_user=1.5: it must be a str or an int"),
        ({"limit_user": "\0"}, "NUL"),
        ({"session": 3.5}, "session=3.5: it must be a str or an int"),
        ({"limit_user": True}, "limit_user=True: it must be a str or an int"),
    ],
)
def test_bad_option_is_refused_at_the_call(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        noop.using(**options)


def test_user_may_be_a_primary_key() -> None:
    job = noop.using(limit_user=7, tenant="acme").delay()

    assert job.refresh().limit_user == "acme/7"
