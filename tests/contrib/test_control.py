"""The verbs of django_tenantqueue.control with rows of apps, and what makes these rows."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from django_tenantqueue import Every, Job, control
from django_tenantqueue.contrib.alerts import control as alerts
from django_tenantqueue.contrib.api import control as api
from django_tenantqueue.contrib.api.tokens import authenticate
from django_tenantqueue.contrib.retention import control as retention
from django_tenantqueue.contrib.routing import control as routing
from django_tenantqueue.contrib.schedules import control as schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.exceptions import InvalidOption
from tests.factories import made_changes, make_queue
from tests.testapp.tasks import noop

NEEDS = "alerts api http retention routing schedules"
pytestmark = pytest.mark.django_db


def actions() -> list[str]:
    return [action for action, _, _ in made_changes()]


@pytest.mark.parametrize("module", [alerts, api, retention, routing, schedules])
def test_each_maker_has_a_twin(module: Any) -> None:
    twin, maker = sorted(module.__all__)

    assert twin == f"a{maker}"
    assert maker.startswith("make_")
    assert inspect.iscoroutinefunction(getattr(module, twin))


def test_schedule_is_paused_resumed_run_tuned_and_deleted() -> None:
    row = schedules.make_schedule("nightly", noop, Every(hours=1))
    other = schedules.make_schedule("all", noop, Every(hours=1), tenant=None, enabled=False)

    assert control.pause(row).changed == [row.pk]
    assert control.pause([row]).unchanged == [row.pk]
    assert control.resume(Schedule.objects.filter(pk=row.pk)).changed == [row.pk]
    assert control.run_now([row, other]) == control.Result([row.pk], [], [other.pk], {})
    row.refresh_from_db()
    assert row.last_job_id == Job.objects.get().pk
    assert control.tune(row, expression="2h", task=noop).changed == [row.pk]
    assert control.tune(row, expression="2h").unchanged == [row.pk]
    assert control.delete(row).changed == [row.pk]
    assert control.delete(row).refused == {row.pk: "there is no such schedule"}
    assert actions() == ["add", "add", "disable", "enable", "run_now", "tune", "delete"]


def test_alert_rule_is_paused_resumed_tuned_and_deleted() -> None:
    row = alerts.make_alert_rule("late", "queue_late", threshold=60, log=True)

    assert control.pause(row).changed == [row.pk]
    assert control.resume(row).changed == [row.pk]
    assert control.tune(row, threshold=90, queue="mail").changed == [row.pk]
    assert control.delete(row).changed == [row.pk]
    assert actions() == ["add", "disable", "enable", "tune", "delete"]


def test_retention_rule_is_tuned_and_deleted() -> None:
    row = retention.make_retention_rule(tenant="acme", keep_days=9)

    assert control.tune(row, keep_days=10).changed == [row.pk]
    assert control.delete(row).changed == [row.pk]
    with pytest.raises(InvalidOption, match=r"run_now\(\) takes jobs, schedules, and no"):
        control.run_now(row)


def test_routing_is_tuned_and_deleted() -> None:
    make_queue("acme", "slow")
    make_queue("acme", "heavy")
    row = routing.make_routing("imports.*", "slow", tenant="acme")

    assert control.tune(row, queue="heavy").changed == [row.pk]
    assert control.delete(row).changed == [row.pk]


def test_token_is_tuned_and_revoked() -> None:
    row, secret = api.make_token("client", tenant="acme")

    assert control.tune(row, max_priority=200).changed == [row.pk]
    assert authenticate(secret)
    assert control.delete(row).changed == [row.pk]
    assert control.delete(row).unchanged == [row.pk]
    assert authenticate(secret) is None
    assert actions() == ["add", "tune", "revoke"]


def test_twin_makes_a_row() -> None:
    row = async_to_sync(schedules.amake_schedule)("nightly", noop, Every(hours=1))

    assert Schedule.objects.get().pk == row.pk
