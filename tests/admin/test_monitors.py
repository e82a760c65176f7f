"""Monitors in the admin: their progress, tuning in the list, details by state, actions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.operations.monitor_control import Feeder, tune_monitor
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import made_changes
from tests.testapp.tasks import echo, fail, noop

from .conftest import text_of, url_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/concurrentjobmonitor/"


def start(count: int = 10, failing: int = 0, **options: Any) -> ConcurrentJobMonitor:
    details = [
        *(fail.using(max_attempts=1).call() for _ in range(failing)),
        *(noop.call() for _ in range(count - failing)),
    ]
    options = {"parallel": 3, "tenant": "acme", **options}
    monitor = ConcurrentJobMonitor.objects.start("install app A", details, **options)
    run_commit_hooks("default")
    return monitor


def page_of(monitor: ConcurrentJobMonitor) -> str:
    return url_of("concurrentjobmonitor", "change", monitor.pk)


def act(client: Client, action: str, *monitors: ConcurrentJobMonitor) -> str:
    """Do something to monitors in the list; return what the page says."""
    data = {"action": action, "_selected_action": [monitor.pk for monitor in monitors]}
    response = client.post(LIST, data, follow=True)
    asks = action != "resume_selected"
    text = text_of(say_yes(client, response) if asks else response)
    run_commit_hooks("default")
    return text


def test_list_says_how_far_each_is(admin_client: Client) -> None:
    start(failing=2, stop_after_failures=1)
    start()
    run_pending()

    text = text_of(admin_client.get(LIST))

    assert "install app A acme stopped 1 detail has failed, and it stops after 1" in text
    assert "or raise that number 10 % 1 / 10, 1 failed" in text
    assert "install app A acme ended 100 % 10 / 10" in text


@pytest.mark.parametrize("count", [1, 12])
def test_list_asks_for_all_counts_at_once(admin_client: Client, count: int) -> None:
    for _ in range(count):
        start(2)
    ConcurrentJobMonitor.objects.update(paused=True)

    with CaptureQueriesContext(connection) as queries:
        assert admin_client.get(LIST).status_code == 200

    assert len(queries) < 15


def test_list_tunes_monitors(admin_client: Client) -> None:
    monitor = start()
    values = form_values(admin_client.get(LIST), "form-TOTAL_FORMS")
    values |= {"form-0-parallel": "5", "form-0-priority": "100", "form-0-interval_seconds": "0"}

    assert admin_client.post(LIST, {**values, "_save": "Save"}).status_code == 302

    run_commit_hooks("default")
    fed = monitor.details().filter(state="ready")
    assert list(fed.values_list("priority", flat=True)) == [100] * 5
    ((action, before, after),) = made_changes()
    assert (action, before["parallel"], after["parallel"]) == ("tune", 3, 5)


def test_conflict_is_shown_when_somebody_else_has_tuned_it(admin_client: Client) -> None:
    monitor = start()
    values = form_values(admin_client.get(LIST), "form-TOTAL_FORMS")
    tune_monitor(monitor.pk, parallel=7)

    response = admin_client.post(LIST, {**values, "form-0-parallel": "5", "_save": "Save"})

    assert "meanwhile another operator set it to 7" in text_of(response)
    monitor.refresh_from_db()
    assert monitor.parallel == 7


def test_page_tunes_a_monitor(admin_client: Client) -> None:
    monitor = start()
    values = form_values(admin_client.get(page_of(monitor)), "parallel")

    values |= {"stop_after_failures": "4", "paused": "on"}
    admin_client.post(page_of(monitor), {**values, "_save": "Save"})

    monitor.refresh_from_db()
    assert (monitor.stop_after_failures, monitor.paused) == (4, True)


@pytest.mark.parametrize("bad", ["-1", "x", "1000001"])
def test_bad_value_is_refused(admin_client: Client, bad: str) -> None:
    start()
    values = form_values(admin_client.get(LIST), "form-TOTAL_FORMS")

    response = admin_client.post(LIST, {**values, "form-0-parallel": bad, "_save": "Save"})

    assert response.status_code == 200
    assert ConcurrentJobMonitor.objects.get().parallel == 3


def test_page_shows_details_by_state(admin_client: Client) -> None:
    monitor = start(failing=1, parallel=2, on_end=echo.call("x"))
    ConcurrentJobMonitor.objects.update(stop_after_failures=1)
    run_pending()

    first = text_of(admin_client.get(page_of(monitor)))
    assert "tests. testapp. tasks. fail error 1 / 1" in first
    assert "it failed" in first
    assert "It has stopped: 1 detail has failed." in first

    line = text_of(admin_client.get(page_of(monitor) + "?details=in_line"))
    assert line.count("tests. testapp. tasks. noop held") == 9
    done = text_of(admin_client.get(page_of(monitor) + "?details=done"))
    assert done.count("success 1 / 5") == 0
    none = text_of(admin_client.get(page_of(monitor) + "?details=retrying"))
    assert "none" in none
    assert "tests.testapp.tasks.echo held" in none  # the callback


def test_page_says_how_many_details_it_leaves_out(admin_client: Client, monkeypatch) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.monitor_control.DETAILS_SHOWN", 4)
    monkeypatch.setattr("django_tenantqueue.admin.monitor_details.DETAILS_SHOWN", 4)
    monitor = start()

    assert "4 of 7 are shown" in text_of(admin_client.get(page_of(monitor) + "?details=in_line"))
    assert "ready 3" in text_of(admin_client.get(page_of(monitor) + "?details=ready"))


def test_page_says_when_it_may_end(admin_client: Client) -> None:
    monitor = start(60, parallel=50)
    with pytest.raises(RuntimeError):
        run_pending(limit=20)

    text = text_of(admin_client.get(page_of(monitor)))

    assert re.search(r"Expected end (now|in [\d.]+ m?s) ", text)
    assert re.search(r"Current rate [\d,.]+ / min pace of the newest 300", text)


def test_actions_pause_resume_retry_and_cancel(admin_client: Client) -> None:
    monitor = start(failing=2, parallel=1)
    ended = start(0)
    run_pending(limit=100)
    second = start()

    assert "1 monitor changed" in act(admin_client, "pause_selected", second)
    assert second.details().filter(state="ready").count() == 0
    assert "1 monitor changed" in act(admin_client, "resume_selected", second)
    assert second.details().filter(state="ready").count() == 3

    assert "2 failed details are retried" in act(admin_client, "retry_selected", monitor)
    assert monitor.progress().failed == 0

    text = act(admin_client, "cancel_selected", second, ended)
    assert "1 monitor is cancelled" in text
    assert "is being cancelled" in text
    feeder = Feeder()
    feeder.step("default")
    feeder.step("default")
    assert set(second.details().values_list("state", flat=True)) == {"cancelled"}
    assert "was cancelled" in act(admin_client, "retry_selected", second)
    assert [change[0] for change in made_changes()] == ["pause", "resume", "retry", "cancel"]


def test_nobody_adds_or_deletes_monitors(admin_client: Client) -> None:
    monitor = start()

    assert admin_client.get(LIST + "add/").status_code == 403
    assert admin_client.get(url_of("concurrentjobmonitor", "delete", monitor.pk)).status_code == 403


def test_viewer_sees_and_changes_nothing(operator: Callable[..., Client]) -> None:
    monitor = start()
    client = operator("view_concurrentjobmonitor")

    assert "install app A" in text_of(client.get(LIST))
    assert client.get(page_of(monitor)).status_code == 200
    assert client.post(page_of(monitor), {"parallel": "9"}).status_code == 403


def test_job_page_links_the_monitor(admin_client: Client) -> None:
    monitor = start()
    detail = Job.objects.filter(monitor_id=monitor.pk, held_by="monitor").first()
    assert detail is not None

    response = admin_client.get(url_of("job", "change", detail.pk))

    assert page_of(monitor) in response.content.decode()


def test_monitor_without_details_has_a_page(admin_client: Client) -> None:
    monitor = start(0)

    assert "no details" in text_of(admin_client.get(page_of(monitor)))
