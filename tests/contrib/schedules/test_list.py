"""What `manage.py tenantqueue schedules list` prints."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.contrib.schedules.services import disable_schedules
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db


def printed(*options: str, **values: Any) -> str:
    out = StringIO()
    call_command("tenantqueue", "schedules", "list", *options, stdout=out, **values)
    return out.getvalue()


def test_schedules_are_listed_with_their_states() -> None:
    made = make_schedule("nightly", noop, "0 3 * * *", tenant="acme")
    off = make_schedule("off", noop, "0 4 * * *")
    disable_schedules([off.pk])
    Schedule.objects.filter(pk=made.pk).update(failures=1, last_error="boom\nbang")

    assert "disabled     cron 0 4 * * *" in printed()
    (line,) = printed("--failing", "--tenant=acme").splitlines()
    assert line.endswith(f"{noop.name}  ERROR boom bang")


def test_schedules_are_one_object_when_json_is_asked_for() -> None:
    make_schedule("nightly", noop, "0 3 * * *", tenant="acme")

    (found,) = json.loads(printed("--format=json"))["schedules"]

    assert (found["name"], found["tenant"], found["expression"]) == ("nightly", "acme", "0 3 * * *")
    assert found["next_at"]
