"""Muted problems: what is folded, until when, for whom, and what the audit log keeps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_tenantqueue import control
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import Change, Mute, TenantQueue
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.operations.mutes import prune_mutes
from django_tenantqueue.status.fleet_report import read_report, read_report_of
from tests.factories import make_job, make_queue, make_worker

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
PAUSED = "ready jobs in paused queues, or in queues without slots: "


@pytest.fixture(autouse=True)
def worker(db: None) -> None:
    make_worker()


def pause_queue(tenant: str, name: str = "mail") -> TenantQueue:
    queue = make_queue(tenant, name, paused=True)
    make_job(queue)
    return queue


def mute(code: str = "queue_paused", **given: Any) -> control.Result:
    return control.mute(code, **{"until": HOUR, "reason": "known", **given})


def problems() -> tuple[list[str], list[str]]:
    """Return the texts about paused queues: those that count, and those that are muted."""
    report = read_report("default", jobs=0)
    counted, muted = (
        [p.text.removeprefix(PAUSED) for p in found if p.code == "queue_paused"]
        for found in (report.problems, report.muted)
    )
    return counted, muted


def test_object_is_muted_and_the_others_still_count() -> None:
    pause_queue("acme")
    pause_queue("zebra")

    mute(name="mail", tenant="acme")

    assert problems() == (["zebra/mail"], ["acme/mail"])
    (muted,) = (p.muted for p in read_report("default", jobs=0).muted)
    assert muted is not None
    assert (muted.by, muted.reason) == ("", "known")
    assert abs(muted.until - timezone.now() - HOUR) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, []),
        ({"tenant": "acme"}, ["zebra/mail"]),
        ({"name": "mail"}, ["acme/reports"]),
        ({"name": "none"}, ["acme/mail, acme/reports, zebra/mail"]),
        ({"tenant": ""}, ["acme/mail, acme/reports, zebra/mail"]),
    ],
)
def test_mute_is_of_all_objects_of_a_tenant_or_of_a_name(given: Any, left: list[str]) -> None:
    pause_queue("acme")
    pause_queue("acme", "reports")
    pause_queue("zebra")

    mute(**given)

    assert problems()[0] == left


def test_mute_of_a_code_leaves_other_problems() -> None:
    pause_queue("acme")

    mute("queue_late")

    assert problems() == (["acme/mail"], [])


def test_mute_ends_by_itself_and_is_deleted_later() -> None:
    pause_queue("acme")
    mute()
    other = mute(tenant="zebra").changed
    assert problems() == ([], ["acme/mail"])

    Mute.objects.exclude(pk__in=other).update(until=timezone.now() - timedelta(seconds=1))

    assert problems() == (["acme/mail"], [])
    assert prune_mutes("default") == 1
    assert [*Mute.objects.values_list("pk", flat=True)] == other


def test_object_that_is_muted_again_has_the_new_time_and_reason() -> None:
    with acting_as("ada"):
        first = mute(tenant="acme").changed
    with acting_as("bob"):
        second = mute(tenant="acme", until=2 * HOUR, reason="still").changed

    assert first == second
    row = Mute.objects.get()
    assert (row.actor, row.reason) == ("bob", "still")
    assert row.until > timezone.now() + HOUR


def test_unmute_ends_the_mutes_that_are_meant() -> None:
    pause_queue("acme")
    mute(tenant="acme", name="mail")
    mute(tenant="zebra")
    mute("queue_late")

    assert len(control.unmute("queue_paused", tenant="acme").changed) == 1
    assert problems() == (["acme/mail"], [])
    assert len(control.unmute("queue_paused").changed) == 1
    assert not control.unmute("queue_paused").changed
    assert Mute.objects.get().code == "queue_late"


def test_audit_log_has_who_muted_until_when_and_why() -> None:
    with acting_as("ada"):
        mute(tenant="acme", name="mail")
        control.unmute("queue_paused")

    unmuted, muted = Change.objects.all()
    assert (muted.action, muted.actor, muted.tenant) == ("mute", "ada", "acme")
    assert muted.object_label == "acme / mail: queue_paused"
    assert muted.after["reason"] == "known"
    assert muted.after["until"]
    assert (unmuted.action, unmuted.actor) == ("unmute", "ada")


def test_users_of_a_tenant_do_not_see_mutes_of_the_fleet_or_of_others() -> None:
    pause_queue("acme")
    mute(reason="the secret of zebra")
    mute(tenant="zebra", reason="the secret of zebra")

    report = read_report_of("default", ["acme"], ())

    assert [p.text for p in report.problems] == [f"{PAUSED}acme/mail"]
    assert not report.muted
    mute(tenant="acme", reason="ours")
    report = read_report_of("default", ["acme"], ())
    assert [p.muted and p.muted.reason for p in report.muted] == ["ours"]
    assert not report.problems


def test_text_of_unknown_tasks_counts_the_jobs_of_the_tasks_that_are_not_muted() -> None:
    for name in ("app.gone", "app.gone", "app.away"):
        error = [{"class": "django_tenantqueue.exceptions.UnknownTask", "message": "x"}]
        make_job(task=name, state="scheduled", errors=error)
    texts = [p.text for p in read_report("default", jobs=0).problems if p.code == "unknown_task"]
    assert texts[0].startswith("workers claimed 3 jobs")

    mute("unknown_task", name="app.gone")

    report = read_report("default", jobs=0)
    assert [p.text[:29] for p in report.problems if p.code == "unknown_task"] == [
        "workers claimed 1 job that th"
    ]
    assert [p.text[:22] for p in report.muted] == ["workers claimed 2 jobs"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"code": "queue_pausd"}, "Did you mean 'queue_paused'"),
        ({"code": "backoff"}, "'backoff' is no problem"),
        ({"until": timedelta(seconds=-1)}, "it must be in the future"),
        ({"until": "tomorrow"}, "it must be an aware datetime"),
        ({"reason": " "}, "say why"),
        ({"reason": "x" * 501}, "in at most 500 characters"),
        ({"name": "a\x00"}, "name="),
        ({"tenant": "x" * 201}, "tenant="),
    ],
)
def test_wrong_value_is_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        mute(**given)

    assert not Mute.objects.exists()


@pytest.mark.parametrize("target", [7, make_queue, [True], TenantQueue.objects.none()])
def test_rows_that_cannot_be_muted_are_refused(target: Any) -> None:
    with pytest.raises(InvalidOption):
        control.mute(target, until=HOUR, reason="known")
