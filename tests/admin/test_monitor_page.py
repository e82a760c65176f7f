"""A monitor's page: what it says of progress, bounds and errors, and the retry of what failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.admin import monitor_actions
from django_tenantqueue.models import Change, ConcurrentJobMonitor, Job, TenantQueue
from django_tenantqueue.operations import monitor_control, monitor_retry
from django_tenantqueue.operations.monitor_retry import FailedRetry
from django_tenantqueue.queries import base
from django_tenantqueue.queries.base import send_statement
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import made_changes, make_jobs, make_queue, make_worker
from tests.testapp.tasks import echo, fail, noop

from .conftest import text_of, url_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>"


def start(count: int = 10, failing: int = 0, **options: Any) -> ConcurrentJobMonitor:
    details = [
        *(fail.using(max_attempts=1).call() for _ in range(failing)),
        *(noop.call() for _ in range(count - failing)),
    ]
    options = {"parallel": 3, "tenant": "acme", **options}
    monitor = ConcurrentJobMonitor.objects.start("install app A", details, **options)
    run_commit_hooks("default")
    return monitor


@pytest.fixture
def sent_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the statements of sql/ that are sent, which Django does not count."""
    sent = []

    def send(raw: Any, name: str, params: Any, **options: Any) -> Any:
        sent.append(name)
        return send_statement(raw, name, params, **options)

    monkeypatch.setattr(base, "send_statement", send)
    return sent


def page_of(monitor: ConcurrentJobMonitor) -> str:
    return url_of("concurrentjobmonitor", "change", monitor.pk)


def live_of(monitor: ConcurrentJobMonitor) -> str:
    return url_of("concurrentjobmonitor", "live", monitor.pk)


def press_retry(client: Client, monitor: ConcurrentJobMonitor) -> HttpResponse:
    """Press the button of a monitor's page; return the page that asks."""
    return client.post(page_of(monitor), {"_retry_failed": "1"}, follow=True)


def add_failed(monitor: ConcurrentJobMonitor, error: str, count: int = 1, **columns: Any) -> None:
    """Add failed details whose last error is of that class."""
    errors = [{"class": "builtins.KeyError"}, {"class": error, "message": f"{error}!\nmore"}]
    values = {"state": "error", "monitor_id": monitor.pk, "errors": errors, **columns}
    make_jobs(make_queue(), count, **values)


# progress


def test_page_and_its_refresh_show_the_same(admin_client: Client) -> None:
    make_worker()
    monitor = start(failing=2)
    run_pending()

    page, live = admin_client.get(page_of(monitor)), admin_client.get(live_of(monitor))

    for text in (text_of(page), text_of(live)):
        assert "ended 100 % 10 of 10 details have ended" in text
        assert "2 failed, 8 done" in text
        assert "It has ended." in text
        assert "Total time" in text
        assert "Failed 2 20.0 % of the details that ended" in text
        assert "2 ValueError : it failed tests. testapp. tasks. fail" in text
    assert "data-url" not in live.content.decode()
    assert "refresh.js" not in page.content.decode()
    assert 'name="parallel"' not in live.content.decode()


def test_refresh_goes_on_while_the_monitor_is_unfinished(admin_client: Client) -> None:
    monitor = start()

    page = admin_client.get(page_of(monitor)).content.decode()
    html = admin_client.get(live_of(monitor)).content.decode()

    assert "refresh.js" in page
    assert 'data-live="progress"' in html
    assert f'data-url="{live_of(monitor)}"' in html


def test_refresh_keeps_the_chosen_state(admin_client: Client) -> None:
    monitor = start()

    html = admin_client.get(page_of(monitor) + "?details=in_line").content.decode()

    assert f'data-url="{live_of(monitor)}?details=in_line"' in html
    hostile = admin_client.get(page_of(monitor), {"details": f'"{HOSTILE}'})
    assert HOSTILE not in hostile.content.decode()


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        ({}, "not known before five details have ended within an hour"),
        ({"paused": True}, "not known: no details are starting at the moment"),
        ({"parallel": 0}, "not known: no details are starting at the moment"),
    ],
)
def test_expected_end_says_why_it_is_not_known(
    admin_client: Client, prepare: dict[str, Any], told: str
) -> None:
    monitor = start()
    ConcurrentJobMonitor.objects.update(**prepare)

    assert f"Expected end – {told}" in text_of(admin_client.get(page_of(monitor)))


def test_rates_are_of_the_last_details_and_of_the_whole_life(admin_client: Client) -> None:
    monitor = start(200, parallel=5)
    queue = make_queue()
    at = timezone.now()
    for minutes in range(1, 61):
        values = {"state": "success", "monitor_id": monitor.pk}
        make_jobs(queue, 1, **values, finished_at=at - timedelta(minutes=minutes - 1, seconds=1))
    monitor.created_at = at - timedelta(minutes=120)
    ConcurrentJobMonitor.objects.update(created_at=monitor.created_at)
    Job.objects.filter(
        monitor_id=monitor.pk,
        held_by="monitor",
        pk__in=[
            *Job.objects.filter(monitor_id=monitor.pk, held_by="monitor").values_list(
                "pk", flat=True
            )
        ][:60],
    ).delete()

    text = text_of(admin_client.get(page_of(monitor)))

    assert "30 %" in text
    assert "Current rate 1 / min" in text
    assert "Mean rate 0.5 / min started 2 h ago" in text
    assert re.search(r"Expected end in 2 h \d+ min", text)


def test_nearly_ended_monitor_is_not_shown_as_ended(admin_client: Client) -> None:
    monitor = start(300, parallel=300)
    with pytest.raises(RuntimeError):
        run_pending(limit=298)

    assert " 99 % 29" in text_of(admin_client.get(page_of(monitor)))


# what bounds it


def test_page_says_what_bounds_it_with_links_and_the_remedy(admin_client: Client) -> None:
    make_worker(threads=50)
    make_queue("acme", "installs", num_slots=2)
    monitor = start(60, parallel=40, queue="installs")

    response = admin_client.get(page_of(monitor))

    text = text_of(response)
    assert "38 details: " not in text
    assert "40 details: Its “parallel” is 40, but its queue acme / installs has 2 slots" in text
    assert "Give the queue more slots. queue: acme / installs" in text
    queue = TenantQueue.objects.get(name="installs")
    assert url_of("tenantqueue", "change", queue.pk) in response.content.decode()


def test_page_says_who_paused_it(admin_client: Client) -> None:
    monitor = start()
    values = form_values(admin_client.get(page_of(monitor)), "parallel")
    admin_client.post(page_of(monitor), {**values, "paused": "on", "_save": "Save"})

    text = text_of(admin_client.get(page_of(monitor)))

    assert "It is paused: no further detail starts. Last set by admin (admin), now ." in text


def test_bounds_link_only_what_the_user_may_open(operator: Callable[..., Client]) -> None:
    make_worker(threads=50)
    queue = make_queue("acme", "installs", num_slots=2)
    make_jobs(queue, 2, state="running")
    monitor = start(60, parallel=2, queue="installs")

    html = operator("view_concurrentjobmonitor").get(page_of(monitor)).content.decode()

    assert "All 2 slots of its queue are taken" in html
    assert url_of("tenantqueue", "change", queue.pk) not in html
    assert "/admin/tenantqueue/job/" not in html


# errors


def test_errors_are_grouped_by_task_and_class(admin_client: Client) -> None:
    monitor = start()
    add_failed(monitor, "shop.errors.Refused", 3)
    add_failed(monitor, "builtins.OSError", 2)
    add_failed(monitor, "builtins.OSError", 1, task="shop.pay")
    newest = Job.objects.filter(state="error", task="shop.pay").get()

    response = admin_client.get(live_of(monitor))

    text = text_of(response)
    order = [
        text.index(part)
        for part in (
            "3 Refused : shop.errors.Refused! tests.",
            "2 OSError : builtins.OSError! tests.",
            "1 OSError : builtins.OSError! shop. pay",
        )
    ]
    assert order == sorted(order)
    assert "more" not in text[order[0] : order[-1]]
    assert url_of("job", "change", newest.pk) in response.content.decode()


def test_errors_say_that_only_the_newest_are_grouped(admin_client: Client, monkeypatch) -> None:
    monkeypatch.setattr("django_tenantqueue.admin.monitor_page.COUNTED_TO", 4)
    monkeypatch.setattr("django_tenantqueue.admin.monitor_page.LISTED", 1)
    monitor = start()
    add_failed(monitor, "builtins.KeyError", 7, finished_at=timezone.now() - timedelta(hours=1))
    add_failed(monitor, "builtins.OSError", 3)

    text = text_of(admin_client.get(live_of(monitor)))

    assert "3 OSError" in text
    assert "of the newest 4 of 10 failed details, the 1 largest groups" in text


def test_failed_callback_is_not_among_the_errors(admin_client: Client) -> None:
    monitor = start(2, on_end=fail.using(max_attempts=1).call())
    run_pending()

    text = text_of(admin_client.get(live_of(monitor)))

    assert "Errors of failed details" not in text
    assert "Failed 0" in text


def test_errors_are_hidden_when_the_user_may_not_view_jobs(
    operator: Callable[..., Client],
) -> None:
    monitor = start()
    add_failed(monitor, "shop.errors.Refused")

    for path in (page_of(monitor), live_of(monitor)):
        text = text_of(operator("view_concurrentjobmonitor").get(path))
        assert "Refused" not in text
        assert "You are not allowed to view jobs." in text


def test_hostile_names_and_messages_are_escaped(admin_client: Client) -> None:
    monitor = start()
    add_failed(monitor, HOSTILE, task=HOSTILE)
    ConcurrentJobMonitor.objects.update(name=HOSTILE)

    for path in (page_of(monitor), live_of(monitor)):
        assert HOSTILE not in admin_client.get(path).content.decode()


# retry


def test_retry_asks_with_the_count_and_makes_one_entry(admin_client: Client) -> None:
    monitor = start(failing=4, on_end=echo.call("done"))
    run_pending()

    question = press_retry(admin_client, monitor)

    text = text_of(question)
    assert "Retry 4 failed details?" in text
    assert "The monitor has ended: its callback does not run again" in text
    assert monitor.progress().failed == 4
    assert "4 failed details are retried" in text_of(say_yes(admin_client, question))
    run_commit_hooks("default")
    assert monitor.progress().failed == 0
    (change,) = Change.objects.all()
    assert (change.actor, change.source, change.action) == ("admin", "admin", "retry")
    assert change.after == {"retried_details": 4}


def test_retry_in_steps_makes_one_entry(admin_client: Client, monkeypatch) -> None:
    monkeypatch.setattr(monitor_retry, "BATCH", 3)
    monitor = start(10, failing=10, on_end=fail.using(max_attempts=1).call())
    run_pending()

    say_yes(admin_client, press_retry(admin_client, monitor))

    assert monitor.progress().failed == 0
    assert Job.objects.get(pk=monitor.anchor_id).state == "error"
    assert made_changes() == [("retry", {}, {"retried_details": 10})]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({}, "Its callback waits for them."),
        ({"paused": True}, "The monitor is paused: they wait until you resume it."),
    ],
)
def test_retry_says_what_happens_to_an_unfinished_monitor(
    admin_client: Client, columns: dict[str, Any], told: str
) -> None:
    monitor = start()
    add_failed(monitor, "builtins.OSError")
    ConcurrentJobMonitor.objects.update(**columns)

    assert told in text_of(press_retry(admin_client, monitor))


def test_retry_of_a_cancelled_monitor_is_not_offered_and_refused(admin_client: Client) -> None:
    monitor = start()
    add_failed(monitor, "builtins.OSError")
    monitor_control.cancel_monitor(monitor.pk)

    assert "_retry_failed" not in admin_client.get(page_of(monitor)).content.decode()
    assert "was cancelled" in text_of(press_retry(admin_client, monitor))
    assert monitor.progress().failed == 1


def test_retry_needs_the_permission_to_change(operator: Callable[..., Client]) -> None:
    monitor = start()
    add_failed(monitor, "builtins.OSError")
    client = operator("view_concurrentjobmonitor", "view_job")

    assert "_retry_failed" not in client.get(page_of(monitor)).content.decode()
    assert press_retry(client, monitor).status_code == 403
    assert monitor.progress().failed == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("from_list", [True, False])
def test_retry_commits_each_step(admin_client: Client, monkeypatch, from_list: bool) -> None:
    monkeypatch.setattr(monitor_retry, "BATCH", 2)
    monitor = start(6, failing=6)
    run_pending()
    before_step = []

    def step(retry: FailedRetry) -> None:
        before_step.append((connection.in_atomic_block, monitor.progress().failed))
        one_step(retry)

    one_step = FailedRetry.step
    monkeypatch.setattr(FailedRetry, "step", step)
    if from_list:
        chosen = {"action": "retry_selected", "_selected_action": [monitor.pk]}
        question = admin_client.post(url_of("concurrentjobmonitor", "changelist"), chosen)
    else:
        question = press_retry(admin_client, monitor)
    say_yes(admin_client, question)

    assert before_step == [(False, 6), (False, 4), (False, 2), (False, 0)]
    assert monitor.progress().failed == 0


def test_long_retry_goes_on_with_the_next_request(admin_client: Client, monkeypatch) -> None:
    monkeypatch.setattr(monitor_retry, "BATCH", 2)
    monkeypatch.setattr(monitor_actions, "RETRY_SECONDS", 0.0)
    monitor = start(5, failing=5)
    run_pending()

    first = say_yes(admin_client, press_retry(admin_client, monitor))
    assert "2 of 5 failed details have been retried so far." in text_of(first)
    assert "go_on.js" in first.content.decode()
    second = say_yes(admin_client, first)
    assert "4 of 5 failed details have been retried so far." in text_of(second)
    last = say_yes(admin_client, second)

    assert "5 failed details are retried." in text_of(last)
    assert monitor.progress().failed == 0
    assert made_changes() == [("retry", {}, {"retried_details": 5})]


def test_long_retry_from_the_list_says_that_some_are_left(
    admin_client: Client, monkeypatch
) -> None:
    monkeypatch.setattr(monitor_retry, "BATCH", 2)
    monkeypatch.setattr(monitor_actions, "RETRY_SECONDS", 0.0)
    monitor = start(5, failing=5)
    run_pending()

    chosen = {"action": "retry_selected", "_selected_action": [monitor.pk]}
    question = admin_client.post(url_of("concurrentjobmonitor", "changelist"), chosen)
    text = text_of(say_yes(admin_client, question))

    assert "some are left. Retry them on its page." in text


@pytest.mark.parametrize("place", ["", "forged", "of another monitor"])
def test_forged_place_of_a_retry_is_refused(admin_client: Client, place: str) -> None:
    monitor, other = start(), start()
    add_failed(monitor, "builtins.OSError")
    if place == "of another monitor":
        before = (timezone.now(), 1)
        place = monitor_actions._signed(FailedRetry("default", other, before))

    data = {"_retry_failed": "1", "_apply": "1", "_place": place}
    response = admin_client.post(page_of(monitor), data, follow=True)

    assert response.status_code == 200
    assert monitor.progress().failed == 1


# permissions and cost


def test_refresh_needs_a_permission(operator: Callable[..., Client]) -> None:
    monitor = start()

    assert operator("view_job").get(live_of(monitor)).status_code == 403
    client = operator("view_concurrentjobmonitor")
    assert client.get(live_of(monitor)).status_code == 200
    assert client.get(url_of("concurrentjobmonitor", "live", 10**9)).status_code == 404


def test_page_takes_few_statements(admin_client: Client, sent_statements: list[str]) -> None:
    make_worker(threads=50)
    queue = make_queue("acme", "installs", num_slots=2, paused=True)
    monitor = start(200, parallel=40, queue="installs", interval=5)
    add_failed(monitor, "builtins.OSError", 20)
    for n in range(10):
        held = {
            "state": "held",
            "held_by": "limit_user",
            "limit_user": f"acme/{n}",
            "session_key": None,
        }
        make_jobs(queue, 2, monitor_id=monitor.pk, **held)

    sent_statements.clear()
    with CaptureQueriesContext(connection) as queries:
        assert admin_client.get(page_of(monitor)).status_code == 200

    texts = [query["sql"] for query in queries]
    assert len(texts) + len(sent_statements) <= 30, "\n".join([*texts, *sent_statements])


def test_page_of_a_monitor_that_has_ended_offers_nothing_to_tune(admin_client: Client) -> None:
    ended = start(2)
    run_pending()
    other = start(3)

    page = admin_client.get(url_of("concurrentjobmonitor", "change", ended.pk)).content.decode()

    assert 'name="parallel"' not in page
    assert "Takes effect within a second" not in page
    assert "Settings" in page
    page = admin_client.get(url_of("concurrentjobmonitor", "change", other.pk)).content.decode()
    assert 'name="parallel"' in page
