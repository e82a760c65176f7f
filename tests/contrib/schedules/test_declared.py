"""Schedules that code declares: what is said of them, and without the app."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from django.core.checks.registry import registry

from django_tenantqueue import Every, task
from django_tenantqueue.calls import sources
from django_tenantqueue.contrib.schedules.declared import check_schedules
from django_tenantqueue.exceptions import InvalidOption


def test_schedule_of_a_task_is_checked(monkeypatch: Any) -> None:
    monkeypatch.setattr(sources, "_tasks", dict(sources.registered_tasks()))
    assert check_schedules() == []
    task(name="tests.wrong", schedule="30 3 * *")(lambda: None)

    (found,) = check_schedules()

    assert found.id == "tenantqueue.E010"
    assert "is not a cron expression" in found.msg


def test_schedule_is_an_option_of_its_app(own_tasks: object) -> None:
    declared = task(name="tests.nightly", schedule=Every(hours=1))(lambda: None)

    assert declared.extra == {"schedule": Every(hours=1)}
    assert check_schedules in registry.registered_checks


def test_task_with_a_schedule_is_declared_among_models_and_without_celery() -> None:
    code = (
        "import sys; from django.conf import settings; settings.configure("
        "INSTALLED_APPS=['tests.features.early', 'django_tenantqueue', "
        "'django_tenantqueue.contrib.schedules'], USE_TZ=True); "
        "import django; django.setup(); from tests.features.early.models import nightly; "
        "print(nightly.extra['schedule'].expression, 'celery' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, check=False, text=True
    )

    assert (done.stderr, done.stdout) == ("", "30 3 * * * False\n")


def test_several_schedules_of_a_task_are_answered_with_where_they_go():
    with pytest.raises(InvalidOption, match="a task declares one schedule"):
        task(name="tests.foreign", schedule=[Every(hours=1)])(lambda: None)
