"""What operators do to sessions and caps, and which rows are removed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.gate_keys import gate_key
from django_tenantqueue.models import Session
from django_tenantqueue.operations import session_control as sessions
from django_tenantqueue.operations.gates import Sweep
from django_tenantqueue.operations.session_control import Pruning, make_user_limit
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db


def make_session(key: str = "s", kind: str = "serial", **columns: object) -> Session:
    """Make a row that is old enough to be removed."""
    made = Session.objects.create(
        kind=kind, tenant="acme", key=key, gate_key=gate_key("acme", key), **columns
    )
    Session.objects.filter(pk=made.pk).update(created_at=timezone.now() - timedelta(hours=2))
    return made


def test_idle_rows_are_removed_and_no_others() -> None:
    for number in range(3):
        make_session(f"idle {number}")
    make_session("idle user", "limit_user")
    kept = [
        make_session("paused", paused=True),
        make_session("set", on_failure="halt"),
        make_session("halted", halted_at=timezone.now()),
        make_session("7", "limit_user", num_slots=3),
        make_session("running"),
        make_session("waiting"),
        make_session("busy", "limit_user"),
    ]
    noop.using(tenant="acme", session="running").delay()
    noop.using(tenant="acme", session="waiting", run_at=timedelta(hours=1)).delay()
    noop.using(tenant="acme", limit_user="busy").delay()
    run_commit_hooks("default")
    young = Session.objects.create(kind="serial", key="y", gate_key="/y")

    assert Pruning().step("default") == 4

    assert set(Session.objects.all()) == {*kept, young}


def test_pruning_goes_on_where_it_stopped() -> None:
    noop.using(tenant="acme", session="0").delay()
    run_commit_hooks("default")
    Session.objects.update(created_at=timezone.now() - timedelta(hours=2))
    for number in range(1, 4):
        make_session(str(number))
    pruning = Pruning(most=2)

    assert [pruning.step("default") for _ in range(3)] == [1, 2, 0]


def test_session_whose_row_was_removed_is_made_again() -> None:
    noop.using(tenant="acme", session="s").delay()
    run_commit_hooks("default")
    Session.objects.all().delete()
    noop.using(tenant="acme", session="s").delay()

    assert len(run_pending()) == 2

    assert Session.objects.get().gate_key == "acme/s"


def test_user_cap_is_made_once_and_changed_after() -> None:
    first = make_user_limit("acme", "7", num_slots=3)
    again = make_user_limit("acme", "7", num_slots=5)

    assert (again.pk, again.num_slots) == (first.pk, 5)


def test_cap_of_all_users_reaches_each_by_the_sweep() -> None:
    jobs = [noop.using(tenant="acme", limit_user=user).delay() for user in "aabb" for _ in range(2)]
    run_commit_hooks("default")
    make_user_limit("acme", num_slots=3)
    run_commit_hooks("default")

    Sweep().step("default")

    assert [job.refresh().state for job in jobs].count("ready") == 6


@pytest.mark.parametrize(
    ("tenant", "user"), [("acme", "a"), ("acme", "team/a"), ("a/b", "c/d"), ("a\\", "/b")]
)
def test_lower_cap_of_all_users_reaches_one_without_a_line(tenant: str, user: str) -> None:
    jobs = [noop.using(tenant=tenant, limit_user=user).delay() for _ in range(2)]
    run_commit_hooks("default")
    assert [job.refresh().state for job in jobs] == ["ready"] * 2
    make_user_limit(tenant, num_slots=1)
    run_commit_hooks("default")

    Sweep().step("default")

    assert [job.refresh().state for job in jobs] == ["ready", "held"]


def test_sweep_repairs_a_users_line_whose_release_was_missed() -> None:
    make_user_limit("acme", "a", num_slots=1)
    usual = noop.using(tenant="acme", limit_user="a").delay()
    run_commit_hooks("default")
    urgent = noop.using(tenant="acme", limit_user="a", priority=1).delay()
    connection.run_on_commit.clear()

    assert Sweep().step("default") == 1

    assert (usual.refresh().state, urgent.refresh().state) == ("held", "ready")
    assert Sweep().step("default") == 0


def test_bad_change_is_refused() -> None:
    session = make_session()

    with pytest.raises(InvalidOption, match="'priority' cannot be tuned"):
        sessions.tune_session(session.pk, priority=3)
    with pytest.raises(ValidationError, match="sleep"):
        sessions.tune_session(session.pk, on_wait="sleep")
    with pytest.raises(InvalidOption, match="'num_slots' cannot be tuned"):
        sessions.tune_session(session.pk, num_slots=3)


def test_pause_takes_back_what_nobody_has_claimed_and_resume_lets_it_through() -> None:
    job = noop.using(tenant="acme", session="s").delay()
    run_commit_hooks("default")
    session = Session.objects.get()

    assert sessions.pause_sessions([session.pk]) == [session.pk]
    assert sessions.pause_sessions([session.pk]) == []
    run_commit_hooks("default")
    assert job.refresh().state == "held"

    assert sessions.resume_sessions([session.pk]) == [session.pk]
    run_commit_hooks("default")
    assert job.refresh().state == "ready"
