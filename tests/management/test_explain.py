"""What `manage.py tenantqueue explain` prints."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client

from django_tenantqueue.management.subcommands import explain
from django_tenantqueue.models import ConcurrentJobMonitor, TenantQueue
from django_tenantqueue.operations import monitor_control
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_commit_hooks
from tests.admin.forms import say_yes
from tests.factories import make_job, make_queue, make_worker
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("tenantqueue", "explain", *arguments, stdout=out, no_color=True)
    return out.getvalue()


def test_answer_is_printed_in_plain_words() -> None:
    job = make_job(make_queue("acme", "mail", paused=True))

    lines = printed(str(job.pk)).splitlines()

    assert lines == [
        f"#{job.pk} tests.testapp.tasks.noop (ready)",
        "It is ready, and waits to be claimed.",
        "- No worker runs.",
        "    → Start one with “manage.py runworker”.",
        "- Its queue is paused. (queue: acme / mail)",
        "    → Resume the queue.",
    ]


def test_operator_who_paused_the_queue_in_the_admin_is_printed(admin_client: Client) -> None:
    queue = make_queue()
    job = make_job(queue)
    chosen = {"action": "pause_selected", "_selected_action": [queue.pk]}
    say_yes(admin_client, admin_client.post("/admin/tenantqueue/tenantqueue/", chosen))
    assert TenantQueue.objects.get(pk=queue.pk).paused

    assert "    Last set by admin (admin), at " in printed(str(job.pk))


@pytest.mark.parametrize("text", ["#{}", "{:,}", "{}"])
def test_number_is_read_as_it_is_printed_elsewhere(text: str) -> None:
    job = make_job(state=State.SUCCESS)

    assert "It has ended with success" in printed(text.format(job.pk))


def test_json_has_the_codes_and_the_rows() -> None:
    make_worker()
    queue = make_queue(paused=True)
    job = make_job(queue)

    found = json.loads(printed(str(job.pk), "--format=json"))

    assert (found["job_id"], found["state"]) == (job.pk, "ready")
    (cause,) = found["causes"]
    assert cause["code"] == "queue_paused"
    assert cause["target"] == {"kind": "queue", "id": queue.pk, "label": str(queue)}
    assert cause["done_by"] is None


def test_job_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(CommandError, match="job #4711 does not exist") as raised:
        printed("4711")

    assert raised.value.returncode == 1


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "9" * 19, "9" * 5000, ""])
def test_number_of_no_job_is_rejected(text: str) -> None:
    with pytest.raises(CommandError, match="is not the number of a job"):
        printed("--", text)


def test_unknown_database_is_rejected() -> None:
    with pytest.raises(CommandError, match="--database='mars' is not in DATABASES") as raised:
        printed("1", "--database=mars")

    assert raised.value.returncode == 2


def test_database_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise OperationalError("the connection is refused")

    monkeypatch.setattr(explain, "explain", fail)

    with pytest.raises(CommandError, match="cannot be used: the connection is refused"):
        printed(str(make_job().pk))


def start_in_a_small_queue() -> ConcurrentJobMonitor:
    """Start a monitor whose queue has fewer slots than it may have details in flight."""
    make_worker()
    make_queue("acme", "installs", num_slots=2)
    details = [noop.call() for _ in range(60)]
    options = {"parallel": 40, "tenant": "acme", "queue": "installs"}
    monitor = ConcurrentJobMonitor.objects.start("install app A", details, **options)
    run_commit_hooks("default")
    return monitor


def test_bounds_of_a_monitor_are_printed() -> None:
    monitor = start_in_a_small_queue()

    assert printed("--monitor", f"#{monitor.pk}").splitlines() == [
        f"install app A #{monitor.pk} (running)",
        "0 of the 60 remaining details are running.",
        (
            "- 40 details: Its “parallel” is 40, but its queue acme / installs has 2 slots, "
            "so at most 2 details run at once. (queue: acme / installs)"
        ),
        "    → Give the queue more slots.",
    ]


def test_bounds_of_a_monitor_are_printed_as_json() -> None:
    monitor = start_in_a_small_queue()
    monitor_control.pause_monitors([monitor.pk])
    run_commit_hooks("default")

    found = json.loads(printed("--monitor", str(monitor.pk), "--format=json"))

    assert (found["monitor_id"], found["status"]) == (monitor.pk, "paused")
    ((code, details),) = [(one["code"], one["details"]) for one in found["causes"]]
    assert (code, details) == ("monitor_paused", 0)


def test_unknown_monitor_is_an_error() -> None:
    with pytest.raises(CommandError, match="monitor #77 does not exist in the database"):
        printed("--monitor", "77")
