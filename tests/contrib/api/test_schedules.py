"""Schedules over the HTTP API."""

from __future__ import annotations

from typing import Any

import pytest

from django_tenantqueue.contrib.schedules.models import Schedule
from tests.contrib.api.conftest import ApiClient

NEEDS = "schedules"
pytestmark = pytest.mark.django_db


def make_schedule(**columns: Any) -> Schedule:
    values = {"tenant": "acme", "name": "s", "task": "t", "expression": "1h", "kind": "interval"}
    return Schedule.objects.create(**{**values, "args": ["secret"], **columns})


def test_schedule_is_tuned_without_its_call(api: ApiClient) -> None:
    row = make_schedule()

    told = api.patch(f"/schedules/{row.pk}", {"expression": "2h", "enabled": False})

    assert (told.json()["expression"], told.json()["enabled"]) == ("2h", False)
    assert b"secret" not in told.content
    for name, value in (
        ("task", "other"),
        ("args", []),
        ("tenant", "zebra"),
        ("tenant", None),
    ):
        assert api.patch(f"/schedules/{row.pk}", {name: value}).status_code == 422
    for name, value in (("expression", "nonsense"), ("queue", "a\x00b"), ("starts_at", "5")):
        refused = api.patch(f"/schedules/{row.pk}", {name: value})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["at"] == name


def test_schedule_of_the_code_is_enabled_and_disabled_alone(api: ApiClient) -> None:
    row = make_schedule(source="code")

    assert api.patch(f"/schedules/{row.pk}", {"expression": "2h"}).status_code == 422
    assert api.patch(f"/schedules/{row.pk}", {"enabled": False}).json()["enabled"] is False


def test_schedules_for_every_tenant_are_not_shown(api: ApiClient) -> None:
    row = make_schedule(tenant=None)
    assert api.get("/schedules").json()["items"] == []
    assert api.get(f"/schedules/{row.pk}").status_code == 404
