"""manage.py tenantqueue prune"""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.models import Job
from django_tenantqueue.operations import history
from tests.factories import make_jobs, make_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def ids() -> list[int]:
    """Make jobs that ended 10, 10 and 500 days ago."""
    found = []
    queue = make_queue("acme")
    for days, count in ((10, 2), (500, 1)):
        at = timezone.now() - timedelta(days=days)
        history.make_leaf("default", at.date().replace(day=1))
        columns: dict[str, Any] = {"finished_at": at, "args": {"args": ["x"]}}
        found += make_jobs(queue, count, state="success", **columns)
    return found


def run(*args: str) -> str:
    out = io.StringIO()
    call_command("tenantqueue", "prune", *args, stdout=out)
    return out.getvalue()


def test_dry_run_prints_rules_and_partitions_and_deletes_nothing(ids, settings):
    settings.TENANTQUEUE = {"HISTORY_KEEP_MONTHS": 12}
    make_retention_rule(tenant="acme", arguments_days=3)

    text = run("--dry-run")

    assert "acme / – / –: arguments of 2 jobs" in text
    assert "would be dropped, about" in text
    assert Job.objects.filter(pk__in=ids).count() == 3
    report = json.loads(run("--dry-run", "--format=json"))
    assert report["rules"][0] | {"bytes": 0} == {
        "rule": "acme / – / –",
        "what": "arguments",
        "rows": 2,
        "bytes": 0,
    }
    assert len(report["partitions"]) == 1


def test_jobs_are_deleted_when_the_command_runs(ids, settings):
    settings.TENANTQUEUE = {"HISTORY_KEEP_MONTHS": 12}
    make_retention_rule(task="tests.*", keep_days=9)
    make_retention_rule(tenant="acme", task="tests.*", keep_days=600)

    assert run("--dry-run") == "nothing would be deleted\n"  # a rule keeps them all
    text = run()

    assert "0 jobs deleted" in text
    make_retention_rule(tenant="acme", task="tests.*", state="success", keep_days=9)
    assert "acme / tests.* / success: 3 jobs, " in run("--dry-run")
    assert "3 jobs deleted" in run()
    assert not Job.objects.filter(pk__in=ids).exists()


def test_months_are_dropped_when_the_command_runs(ids, settings):
    settings.TENANTQUEUE = {"HISTORY_KEEP_MONTHS": 12}

    report = json.loads(run("--format=json"))

    assert len(report["partitions"]) == 1
    assert report["removed"]["jobs"] == 0
    assert Job.objects.filter(pk__in=ids).count() == 2


def test_nothing_is_said_to_go_when_there_is_no_rule(ids, settings):
    settings.TENANTQUEUE = {"HISTORY_KEEP_MONTHS": None}
    assert run("--dry-run") == "nothing would be deleted\n"
