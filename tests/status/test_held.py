"""What gates hold is seen where operators look first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from django_tenantqueue.gate_keys import ORDER, gate_key
from django_tenantqueue.models import TenantQueue
from django_tenantqueue.states import State
from django_tenantqueue.status.fleet_report import read_report, read_report_of
from django_tenantqueue.status.queue_loads import loads
from django_tenantqueue.status.queue_troubles import Trouble, held_queues, read_now
from tests.admin.conftest import text_of, url_of
from tests.factories import make_jobs, make_queue

pytestmark = pytest.mark.django_db
KEYS: dict[str, dict[str, Any]] = {
    "monitor": {"monitor_id": 7},
    "session": {"session_key": gate_key("acme", "ledger")},
    "limit_user": {"limit_user": gate_key("acme", "eve")},
    "exclusive": {"exclusive_key": gate_key("acme", "report 7")},
    "task": {"task": "shop.tasks.report"},
}
CAUSES = {
    "monitor": "monitor #7",
    "session": "session ledger",
    "limit_user": "user limit eve",
    "exclusive": "unique key report 7",
    "task": "task shop.tasks.report",
}
LATE = [gate for gate in ORDER if gate != "monitor"]


@pytest.fixture(params=ORDER)
def gate(request: pytest.FixtureRequest) -> str:
    """Return a gate that holds three jobs, the oldest of them for 61 minutes."""
    queue = make_queue("acme", "reports")
    hold(queue, request.param, 61)
    hold(queue, request.param, 1, count=2)
    return request.param  # type: ignore[no-any-return]


def hold(queue: TenantQueue, gate: str, minutes: int, count: int = 1) -> None:
    at = timezone.now() - timedelta(minutes=minutes)
    make_jobs(queue, count, state=State.HELD, held_by=gate, run_at=at, created_at=at, **KEYS[gate])


def test_report_says_number_oldest_and_cause_of_what_each_gate_holds(gate: str) -> None:
    report = read_report("default", jobs=0)

    (held,) = report.held
    assert (held.gate, held.queue, held.jobs) == (gate, "reports", 3)
    assert held.wait_seconds == pytest.approx(61 * 60, abs=30)
    said = [problem.text for problem in report.problems if "3 by" in problem.text]
    assert [f"acme/reports (3 by {CAUSES[gate]}, the first for 1 h)" in text for text in said] == (
        [True] if gate in LATE else []
    )


def test_report_of_some_tenants_has_their_held_jobs_alone(gate: str) -> None:
    own = TenantQueue.objects.get()
    hold(make_queue("globex", "reports"), gate, 90)

    report = read_report_of("default", ["acme"], loads("default", [own.pk]).values())

    assert [(held.tenant, held.jobs) for held in report.held] == [("acme", 3)]
    assert getattr(report.counts.held, gate) == 3
    assert not any("globex" in problem.text for problem in report.problems)


def test_first_page_shows_held_jobs(gate: str, admin_client: Client) -> None:
    text = text_of(admin_client.get("/admin/tenantqueue/"))

    assert "Held jobs 3 the first for 1 h 1 min" in text
    row = text[text.index("Held jobs, the longest wait first") :]
    said = f"acme / reports 1 h 1 min 3 {CAUSES[gate]}"
    assert said.replace(" ", "") in row.replace(" ", "")


def test_queue_list_and_page_show_held_jobs(gate: str, admin_client: Client) -> None:
    queue = TenantQueue.objects.get()

    row = text_of(admin_client.get(url_of("tenantqueue", "changelist"), {"trouble": "held"}))
    page = text_of(admin_client.get(url_of("tenantqueue", "change", queue.pk)))

    assert ("3 1 h 1 min" in row) == (gate in LATE)
    assert f"3 by {CAUSES[gate]}, the first for 1 h" in page
    assert (Trouble.HELD in read_now("default", [queue])[queue.pk].troubles) == (gate in LATE)


def test_status_names_the_first_held_job(gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("tenantqueue", "status")

    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("held by")]
    assert line.split("  ")[-1] == f"the first for 1 h: {CAUSES[gate]}, acme / reports"


def test_held_jobs_that_are_young_are_no_trouble() -> None:
    queue = make_queue("acme", "reports")
    for gate in ORDER:
        hold(queue, gate, 0)

    report = read_report("default", jobs=0)

    assert len(report.held) == len(ORDER)
    assert not any("held" in problem.text for problem in report.problems)
    assert held_queues("default").ids == []
