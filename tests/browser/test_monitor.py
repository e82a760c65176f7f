"""A monitor's page in a real browser, while a real worker runs its details."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from django_tenantqueue.models import ConcurrentJobMonitor
from django_tenantqueue.operations.monitor_control import cancel_monitor
from django_tenantqueue.states import State
from tests.factories import make_jobs, make_queue
from tests.process.tasks import hold
from tests.process.workers import Gate, Workers, wait_until
from tests.zygote import Zygote

pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]
LIST = "/admin/tenantqueue/concurrentjobmonitor/"


@pytest.fixture
def workers(live_server: Any, database_url: str, tmp_path: Path) -> Iterator[Workers]:
    """Yield a maker of workers on the test database; all are killed at the end."""
    zygote = Zygote(flags=["-W", "error"])
    made = Workers(database_url, tmp_path, zygote)
    yield made
    made.destroy()
    zygote.close()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


def start(gate: Gate, count: int = 12, **options: Any) -> ConcurrentJobMonitor:
    make_queue("acme", num_slots=None)
    details = [hold.call(str(gate.path)) for _ in range(count)]
    return ConcurrentJobMonitor.objects.start(
        "installs", details, tenant="acme", **{"parallel": 2, **options}
    )


def running(monitor: ConcurrentJobMonitor) -> int:
    return monitor.details().filter(state=State.RUNNING).count()


def page_of(monitor: ConcurrentJobMonitor) -> str:
    return f"{LIST}{monitor.pk}/change/"


def tile(page: Page, title: str) -> Any:
    return page.locator(".tq-tile").filter(has=page.get_by_text(title, exact=True))


def test_parallel_is_edited_while_a_worker_runs(
    open_page: OpenPage, workers: Workers, gate: Gate
) -> None:
    monitor = start(gate)
    workers.start("--threads=20")
    page = open_page(page_of(monitor))
    expect(tile(page, "In flight")).to_contain_text("2 / 2")
    expect(page.locator("#tq-live")).to_contain_text("as many as its “parallel” allows")

    page.fill("#id_parallel", "6")
    page.click("input[name=_continue]")
    page.evaluate("window.marked = true")

    expect(tile(page, "In flight")).to_contain_text("6 / 6")
    expect(tile(page, "In flight")).to_contain_text("6 running, 6 held by the monitor")
    wait_until(lambda: running(monitor) == 6)
    gate.open()
    expect(page.locator("#tq-live .tq-state")).to_have_text("ended")
    expect(page.locator("#tq-live")).to_contain_text("12 of 12 details have ended")
    expect(page.locator("#tq-live .tq-refresh[data-url]")).to_have_count(0)
    assert page.evaluate("window.marked") is True


def test_parallel_is_edited_in_the_list_while_a_worker_runs(
    open_page: OpenPage, workers: Workers, gate: Gate
) -> None:
    monitor = start(gate)
    workers.start("--threads=20")
    wait_until(lambda: running(monitor) == 2)
    page = open_page(LIST)

    page.fill("#id_form-0-parallel", "5")
    page.click("input[name=_save]")

    expect(page.locator(".messagelist")).to_contain_text("1 monitor was changed")
    wait_until(lambda: running(monitor) == 5)
    gate.open()
    wait_until(lambda: monitor.progress().status == "ended")


def test_page_is_not_refreshed_while_a_field_is_edited(open_page: OpenPage, gate: Gate) -> None:
    monitor = start(gate)
    page = open_page(page_of(monitor))
    age = page.locator("#tq-live .tq-age")
    expect(age).to_contain_text("Updated")
    page.fill("#id_parallel", "7")
    page.locator("h1").first.click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    expect(age).to_have_text(re.compile(r"Not updated while you edit, for [5-9] s"))

    assert not asked
    expect(page.locator("#id_parallel")).to_have_value("7")
    page.fill("#id_parallel", "2")
    page.locator("h1").first.click()
    expect(age).to_contain_text("Updated")


def test_page_of_an_ended_monitor_asks_for_nothing_more(open_page: OpenPage, gate: Gate) -> None:
    monitor = start(gate)
    page = open_page(page_of(monitor))
    expect(page.locator("#tq-live .tq-age")).to_contain_text("Updated")

    cancel_monitor(monitor.pk)

    expect(page.locator("#tq-live .tq-state")).to_have_text("cancelled")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3_000)
    assert not asked
    expect(page.locator("#tq-live .tq-age")).to_contain_text("As of")


def test_failed_details_are_retried_from_the_page(open_page: OpenPage, gate: Gate) -> None:
    monitor = start(gate)
    errors = [{"class": "builtins.OSError", "message": "no route to host"}]
    make_jobs(make_queue(), 3, state=State.ERROR, monitor_id=monitor.pk, errors=errors)
    page = open_page(page_of(monitor))
    expect(page.locator("#tq-live-details")).to_contain_text("OSError: no route to host")

    page.click("button[name=_retry_failed]")
    expect(page.locator("h1")).to_contain_text("Retry 3 failed details?")
    page.click("input[value='Yes, retry 3 failed details']")

    expect(page.locator(".messagelist")).to_contain_text("3 failed details are retried.")
    assert monitor.progress().failed == 0


def test_long_retry_goes_on_by_itself(
    open_page: OpenPage, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.monitor_retry.BATCH", 2)
    monkeypatch.setattr("django_tenantqueue.admin.monitor_actions.RETRY_SECONDS", 0.0)
    monitor = start(gate)
    make_jobs(make_queue(), 7, state=State.ERROR, monitor_id=monitor.pk)
    page = open_page(page_of(monitor))

    page.click("button[name=_retry_failed]")
    page.click("input[value='Yes, retry 7 failed details']")

    expect(page.locator(".messagelist")).to_contain_text("7 failed details are retried.")
    assert monitor.progress().failed == 0


def test_nothing_sticks_out_of_a_narrow_window(open_page: OpenPage, gate: Gate) -> None:
    monitor = start(gate)
    errors = [{"class": "builtins." + "E" * 90, "message": "m" * 300}]
    columns = {"task": "n" * 150, "errors": errors}
    make_jobs(make_queue(), 1, state=State.ERROR, monitor_id=monitor.pk, **columns)
    ConcurrentJobMonitor.objects.update(name="i" * 200)
    page = open_page(page_of(monitor), viewport={"width": 420, "height": 800})

    expect(page.locator("#tq-live .tq-age")).to_contain_text("Updated")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
