"""Tuning queues in the list and on their pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.admin import queues as queue_admin
from django_tenantqueue.models import TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.status import busy_queues, queue_loads, queue_troubles
from tests.factories import made_changes, make_figure, make_jobs, make_queue, make_worker
from tests.testapp.tasks import noop

from .conftest import text_of, url_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/tenantqueue/"


def show(client: Client, address: str = LIST) -> dict[str, Any]:
    response = client.get(address)
    assert response.status_code == 200
    return form_values(response, "form-TOTAL_FORMS" if address == LIST else "num_slots")


def save(client: Client, values: dict[str, Any], address: str = LIST, **edits: Any) -> HttpResponse:
    """Post a page with edits; None unticks a box."""
    sent = {name: value for name, value in {**values, **edits}.items() if value is not None}
    return client.post(address, {**sent, "_save": "Save"})


def page_of(queue: TenantQueue) -> str:
    return url_of("tenantqueue", "change", queue.pk)


def second_operator() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("second"))
    return client


def test_list_saves_slots_weight_and_pause(admin_client: Client) -> None:
    queue = make_queue(num_slots=3, weight=1)

    response = save(
        admin_client,
        show(admin_client),
        **{"form-0-num_slots": "7", "form-0-weight": "2", "form-0-paused": "on"},
    )

    assert response.status_code == 302
    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight, queue.paused) == (7, 2, True)


def test_edits_of_different_columns_survive_when_both_forms_are_stale(
    admin_client: Client,
) -> None:
    queue = make_queue(num_slots=3, weight=1)
    other = second_operator()
    first_form, second_form = show(admin_client), show(other)

    save(admin_client, first_form, **{"form-0-num_slots": "7"})
    response = save(other, second_form, **{"form-0-weight": "5", "form-0-paused": "on"})

    assert response.status_code == 302
    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight, queue.paused) == (7, 5, True)


def test_saving_a_stale_list_unchanged_reverts_nothing(admin_client: Client) -> None:
    queue = make_queue(num_slots=3)
    stale = show(admin_client)
    control.tune_queue(queue.pk, num_slots=9, paused=True)

    save(admin_client, stale)

    queue.refresh_from_db()
    assert (queue.num_slots, queue.paused) == (9, True)
    assert len(made_changes()) == 1  # that of the other operator


def test_conflict_names_both_values_when_the_same_column_was_changed(
    admin_client: Client,
) -> None:
    queue = make_queue(num_slots=3)
    stale = show(admin_client)
    control.tune_queue(queue.pk, num_slots=5)

    response = save(admin_client, stale, **{"form-0-num_slots": "7"})

    assert response.status_code == 200
    assert "from 3 to 7, but meanwhile another operator set it to 5" in text_of(response)
    queue.refresh_from_db()
    assert queue.num_slots == 5

    knowing = form_values(response, "form-TOTAL_FORMS")
    assert save(admin_client, knowing).status_code == 302
    queue.refresh_from_db()
    assert queue.num_slots == 7


def test_conflict_in_pause_is_seen_when_the_box_was_unticked(admin_client: Client) -> None:
    queue = make_queue(paused=True)
    stale = show(admin_client)
    control.resume([queue.pk])
    control.tune_queue(queue.pk, num_slots=1)

    assert save(admin_client, stale, **{"form-0-paused": None}).status_code == 302

    queue.refresh_from_db()
    assert (queue.paused, queue.num_slots) == (False, 1)


def test_no_conflict_when_both_wanted_the_same(admin_client: Client) -> None:
    queue = make_queue(num_slots=3)
    stale = show(admin_client)
    control.tune_queue(queue.pk, num_slots=7)

    assert save(admin_client, stale, **{"form-0-num_slots": "7"}).status_code == 302


def test_page_conflict_names_both_values(admin_client: Client) -> None:
    queue = make_queue(num_slots=3, weight=1)
    stale = show(admin_client, page_of(queue))
    control.tune_queue(queue.pk, num_slots=5)

    response = save(admin_client, stale, page_of(queue), num_slots="7", weight="2")

    assert response.status_code == 200
    assert "from 3 to 7, but meanwhile another operator set it to 5" in text_of(response)
    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight) == (5, 1)


def test_rate_is_set_in_the_list_and_limits_on_the_page(admin_client: Client) -> None:
    queue = make_queue()
    limits = TenantQueue.objects.values_list("max_per_second", "burst", "max_waiting")

    edits = {"form-0-max_per_second": "2.5"}
    assert save(admin_client, show(admin_client), **edits).status_code == 302
    assert limits.get() == (2.5, None, None)
    change = ("tune", {"max_per_second": None}, {"max_per_second": 2.5})
    assert made_changes() == [change]

    page = page_of(queue)
    edits = {"burst": "7", "max_waiting": "100", "max_per_second": ""}
    save(admin_client, show(admin_client, page), page, **edits)
    assert limits.get() == (None, 7, 100)
    save(admin_client, show(admin_client, page), page, burst="", max_waiting="")
    assert limits.get() == (None, None, None)


def test_conflict_names_nothing_when_a_limit_was_removed_meanwhile(admin_client: Client) -> None:
    queue = make_queue(max_per_second=1.0)
    stale = show(admin_client)
    control.tune_queue(queue.pk, max_per_second=None)

    response = save(admin_client, stale, **{"form-0-max_per_second": "5"})

    assert "from 1.0 to 5.0, but meanwhile another operator set it to nothing" in text_of(response)
    knowing = form_values(response, "form-TOTAL_FORMS")
    assert save(admin_client, knowing).status_code == 302
    queue.refresh_from_db()
    assert queue.max_per_second == 5.0


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("max_per_second", "0"),
        ("max_per_second", "-1"),
        ("max_per_second", "nan"),
        ("max_per_second", "inf"),
        ("burst", "0"),
        ("max_waiting", "-1"),
    ],
)
def test_wrong_limits_are_a_form_error(admin_client: Client, column: str, wrong: str) -> None:
    queue = make_queue()

    response = save(
        admin_client, show(admin_client, page_of(queue)), page_of(queue), **{column: wrong}
    )

    assert "Please correct the error below" in text_of(response)
    queue.refresh_from_db()
    assert getattr(queue, column) is None


def test_list_marks_a_queue_that_takes_no_more_jobs(admin_client: Client) -> None:
    queue = make_queue(max_waiting=2)
    make_jobs(queue, 1)
    content = admin_client.get(LIST).content.decode()
    assert "1 / 2</a>" in content
    assert "It rejects new jobs" not in content

    make_jobs(queue, 1)

    assert "It rejects new jobs" in admin_client.get(LIST).content.decode()


def test_page_writes_only_changed_columns(admin_client: Client) -> None:
    queue = make_queue(num_slots=3, weight=1)
    stale = show(admin_client, page_of(queue))
    control.tune_queue(queue.pk, num_slots=5)

    assert save(admin_client, stale, page_of(queue), weight="2").status_code == 302

    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight) == (5, 2)


def test_queue_has_no_limit_when_its_slots_are_empty(admin_client: Client) -> None:
    queue = make_queue(num_slots=3)

    saved = save(admin_client, show(admin_client), **{"form-0-num_slots": ""})

    assert saved.status_code == 302
    queue.refresh_from_db()
    assert queue.num_slots is None
    assert 'title="no limit"' in admin_client.get(LIST).content.decode()


@pytest.mark.parametrize("wrong", ["-1", "1000001", "many"])
def test_wrong_slots_are_a_form_error(admin_client: Client, wrong: str) -> None:
    queue = make_queue(num_slots=3)

    in_list = save(admin_client, show(admin_client), **{"form-0-num_slots": wrong})
    on_page = save(
        admin_client, show(admin_client, page_of(queue)), page_of(queue), num_slots=wrong
    )

    for response in (in_list, on_page):
        assert response.status_code == 200
        assert "Please correct the error below" in text_of(response)
    if wrong == "-1":
        assert "greater than or equal to 0" in text_of(in_list)
    queue.refresh_from_db()
    assert queue.num_slots == 3


def test_a_row_that_is_gone_is_a_form_error(admin_client: Client) -> None:
    queue = make_queue()
    values = show(admin_client)
    TenantQueue.objects.filter(pk=queue.pk).delete()

    response = save(admin_client, values, **{"form-0-num_slots": "7"})

    assert response.status_code == 200


def test_audit_tells_from_what_to_what(admin_client: Client) -> None:
    make_queue(num_slots=3, weight=1)

    save(admin_client, show(admin_client), **{"form-0-num_slots": "7", "form-0-weight": "2"})

    before, after = {"num_slots": 3, "weight": 1}, {"num_slots": 7, "weight": 2}
    assert made_changes() == [("tune", before, after)]


def test_list_asks_a_bounded_number_of_queries_when_it_shows_a_full_page(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [make_queue(f"tenant-{number:03}") for number in range(120)]
    make_jobs(made[0], 4)
    counted: list[list[int]] = []

    def count(using: str, ids: Any) -> Any:
        counted.append(list(ids))
        return queue_loads.loads(using, ids)

    monkeypatch.setattr(queue_troubles, "loads", count)
    with CaptureQueriesContext(connection) as captured:
        response = admin_client.get(LIST)

    assert response.content.decode().count('name="form-') >= 50
    assert len(captured) <= 14
    assert len(counted) == 1
    assert len(counted[0]) == 50


def test_saving_a_full_page_asks_a_bounded_number_of_queries(admin_client: Client) -> None:
    for number in range(100):
        make_queue(f"tenant-{number:03}")
    values = show(admin_client)

    with CaptureQueriesContext(connection) as captured:
        save(admin_client, values, **{"form-5-num_slots": "7"})

    assert len(captured) <= 26
    assert TenantQueue.objects.filter(num_slots=7).count() == 1


def test_counts_stop_and_lead_to_the_jobs(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_loads, "COUNTED_TO", 5)
    monkeypatch.setattr(queue_admin, "COUNTED_TO", 5)
    queue = make_queue()
    make_jobs(queue, 7)
    make_jobs(queue, 2, state="running")

    content = admin_client.get(LIST).content.decode()

    assert f'?queue_id={queue.pk}&amp;state=ready">5+</a>' in content
    assert f'?queue_id={queue.pk}&amp;state=active">2</a>' in content


def test_pause_and_resume_actions_are_audited(admin_client: Client) -> None:
    first, second = make_queue(), make_queue(paused=True)
    selected = [first.pk, second.pk]

    question = admin_client.post(
        LIST, {"action": "pause_selected", "_selected_action": selected, "index": "0"}
    )
    response = say_yes(admin_client, question)

    assert "1 tenant queue changed; 1 unchanged: paused no → yes" in text_of(response)
    assert made_changes() == [("pause", {"paused": False}, {"paused": True})]
    assert TenantQueue.objects.filter(paused=True).count() == 2

    admin_client.post(
        LIST, {"action": "resume_selected", "_selected_action": selected, "index": "0"}
    )
    assert not TenantQueue.objects.filter(paused=True).exists()


def test_retire_actions(admin_client: Client) -> None:
    queue = make_queue()
    chosen = {"_selected_action": [queue.pk], "index": "0"}

    admin_client.post(LIST, {"action": "retire_selected", **chosen})
    queue.refresh_from_db()
    assert queue.retired

    admin_client.post(LIST, {"action": "unretire_selected", **chosen})
    queue.refresh_from_db()
    assert not queue.retired


def test_queues_cannot_be_deleted(admin_client: Client) -> None:
    queue = make_queue()

    assert admin_client.get(url_of("tenantqueue", "delete", queue.pk)).status_code == 403
    assert "delete_selected" not in admin_client.get(LIST).content.decode()


def test_a_queue_can_be_added_before_its_first_job(admin_client: Client) -> None:
    address = url_of("tenantqueue", "add")
    values = show(admin_client, address)

    response = save(admin_client, values, address, tenant="acme", name="reports", num_slots="2")
    again = save(admin_client, values, address, tenant="acme", name="reports", num_slots="2")

    assert response.status_code == 302
    assert TenantQueue.objects.get(tenant="acme", name="reports").num_slots == 2
    assert again.status_code == 200
    assert "already exists" in text_of(again)


def test_blanks_around_names_are_kept_as_delay_keeps_them(admin_client: Client) -> None:
    address = url_of("tenantqueue", "add")
    values = show(admin_client, address)

    save(admin_client, values, address, tenant="acme ", name=" mail", num_slots="2")

    job = noop.using(tenant="acme ", queue=" mail").delay()
    assert TenantQueue.objects.get().pk == job.queue_id


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=acm", {"acme"}),
        ("queue=reports", {"other"}),
        ("queue=report", set()),
        ("trouble=paused", {"other"}),
        ("retired__exact=0", {"acme", "other"}),
    ],
)
def test_filters_do_not_read_distinct_values(
    admin_client: Client, query: str, found: set[str]
) -> None:
    make_queue("acme")
    make_queue("other", "reports", paused=True)

    with CaptureQueriesContext(connection) as captured:
        response = admin_client.get(f"{LIST}?{query}")

    assert {queue.tenant for queue in response.context["cl"].result_list} == found
    assert not any("DISTINCT" in entry["sql"] for entry in captured.captured_queries)


def test_empty_list_says_what_to_do(admin_client: Client) -> None:
    assert "A task enqueues with .delay()" in text_of(admin_client.get(LIST))
    assert "No tenant queue matches" in text_of(admin_client.get(f"{LIST}?q=acme"))


@pytest.mark.parametrize("shown", [None, "nonsense"])
def test_a_request_that_does_not_tell_what_was_shown_is_taken_as_it_is(
    admin_client: Client, shown: str | None
) -> None:
    queue = make_queue(num_slots=3)

    save(
        admin_client,
        show(admin_client),
        **{"form-0-num_slots": "7", "initial-form-0-num_slots": shown},
    )

    queue.refresh_from_db()
    assert queue.num_slots == 7


def test_retired_queues_are_marked(admin_client: Client) -> None:
    make_queue(retired=True)

    assert "tq-state" in admin_client.get(LIST).content.decode()


def test_viewer_sees_a_label_on_paused_queues_alone(operator: Callable[..., Client]) -> None:
    make_queue("healthy")
    make_jobs(make_queue("stopped", paused=True), 1)

    content = operator("view_tenantqueue").get(LIST).content.decode()

    assert "icon-yes" not in content
    assert "icon-no" not in content
    assert content.count('<span class="tq-state tq-state-error">paused</span>') == 1


def shown(client: Client, query: str = "") -> list[str]:
    """Return the tenants of the queues that the list shows, in its order."""
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return [queue.tenant for queue in response.context["cl"].result_list]


def ago(**duration: float) -> datetime:
    return timezone.now() - timedelta(**duration)


def make_troubled() -> None:
    """Make a queue for each trouble, a worker that serves all but one, and two healthy queues."""
    make_worker(exclude_queues=["night"])
    make_jobs(make_queue("late"), 1, created_at=ago(minutes=5), run_at=ago(minutes=5))
    full = make_queue("full", num_slots=2)
    make_jobs(full, 2, state="running")
    make_jobs(full, 1)
    failing = make_queue("failing")
    make_figure(failing, failed=3, succeeded=1)
    make_figure(failing, failed=3, error="ValueError")
    make_queue("paused", paused=True)
    make_queue("slotless", num_slots=0)
    make_jobs(make_queue("unserved", "night"), 1)
    healthy = make_queue("healthy", num_slots=1)
    make_jobs(healthy, 1, state="running")
    make_figure(healthy, succeeded=5, retried=1)
    make_figure(healthy, retried=1, error="ValueError")
    make_jobs(make_queue("working"), 1)


@pytest.mark.parametrize(
    ("trouble", "found"),
    [
        ("late", "late"),
        ("full", "full"),
        ("failing", "failing"),
        ("paused", "paused"),
        ("no-slots", "slotless"),
        ("no-worker", "unserved"),
    ],
)
def test_filter_by_trouble_finds_the_queues_that_have_it(
    admin_client: Client, trouble: str, found: str
) -> None:
    make_troubled()

    assert shown(admin_client, f"trouble={trouble}") == [found]


def test_every_queue_has_no_worker_when_none_is_alive(admin_client: Client) -> None:
    make_worker(heartbeat_at=ago(minutes=5))
    make_worker(draining=True)
    make_jobs(make_queue("acme"), 1)

    assert shown(admin_client, "trouble=no-worker") == ["acme"]


def test_queue_of_an_executor_has_no_worker_when_no_dispatcher_is_alive(
    admin_client: Client,
) -> None:
    make_worker()
    make_jobs(make_queue("celery", executor="celery"), 1)
    make_jobs(make_queue("acme"), 1)

    assert shown(admin_client, "trouble=no-worker") == ["celery"]


def test_nothing_is_coloured_when_a_queue_is_healthy(admin_client: Client) -> None:
    make_troubled()

    rows = row_texts(admin_client)

    coloured = {tenant for tenant, row in rows.items() if "tq-state-" in row or "tq-late" in row}
    assert coloured == rows.keys() - {"healthy", "working"}
    assert "tq-gauge-full" not in rows["healthy"]
    assert "tq-state-held" in rows["paused"]  # no job waits


def row_texts(client: Client) -> dict[str, str]:
    """Return the HTML of the rows of the list, by tenant."""
    body = client.get(LIST).content.decode().split("<tbody>")[1].split("</tbody>")[0]
    rows = [row for row in body.split("<tr>") if "field-title" in row]
    return {row.split("change/")[1].split(">")[1].split("<")[0]: row for row in rows}


def test_row_tells_wait_slots_and_failures(admin_client: Client) -> None:
    make_troubled()

    rows = row_texts(admin_client)

    assert re.search(r"\b5 min \d s", rows["late"])
    assert "2 of 2 slots are taken" in rows["full"]
    assert "tq-gauge-full" in rows["full"]
    assert ">75.0 %</a>" in rows["failing"]
    assert "Of 4 runs in the last hour, 3 ended in error, 0 were retried" in rows["failing"]
    assert "16.7 %" in rows["healthy"]


def test_a_job_that_started_in_another_lane_does_not_hide_the_longest_wait(
    admin_client: Client,
) -> None:
    queue = make_queue("acme")
    make_jobs(queue, 1, priority=100)
    make_jobs(queue, 1, priority=200, created_at=ago(hours=2), run_at=ago(hours=2))

    assert "2 h 0 min" in row_texts(admin_client)["acme"]


def test_list_is_sorted_by_wait_and_by_load(admin_client: Client) -> None:
    make_queue("a-idle")
    make_jobs(make_queue("b-waits"), 1, created_at=ago(seconds=30), run_at=ago(seconds=30))
    make_jobs(make_queue("c-waits-longer"), 1, created_at=ago(hours=1), run_at=ago(hours=1))
    make_jobs(make_queue("d-runs"), 2, state="running")
    columns = ["action_checkbox", *queue_admin.TenantQueueAdmin.list_display]
    wait, running = columns.index("waiting"), columns.index("running")

    assert shown(admin_client, f"o={wait}")[:2] == ["c-waits-longer", "b-waits"]
    assert shown(admin_client, f"o={running}")[0] == "d-runs"
    assert len(shown(admin_client, f"o=-{wait}")) == 4
    TenantQueue.objects.all().update(paused=True)
    assert len(shown(admin_client, f"trouble=late&o={running}")) == 1


def test_list_says_that_it_has_not_looked_at_all_queues(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy_queues, "VISITED", 2)
    for _ in range(2):
        make_jobs(make_queue(), 1)
    said = "Too many queues are busy"

    assert said in text_of(admin_client.get(f"{LIST}?trouble=late"))
    assert said not in text_of(admin_client.get(LIST))
    assert said not in text_of(admin_client.get(f"{LIST}?trouble=paused"))
    assert said in text_of(admin_client.get(f"{LIST}?o=3"))
    make_figure(TenantQueue.objects.first(), failed=3, error="ValueError")
    assert said not in text_of(admin_client.get(f"{LIST}?trouble=failing"))
    monkeypatch.setattr(queue_troubles, "READ", 1)
    assert said in text_of(admin_client.get(f"{LIST}?trouble=failing"))


def test_refresh_leaves_the_messages_to_the_page_that_they_are_for(admin_client: Client) -> None:
    queue = make_queue(paused=True)
    chosen = {"_selected_action": [queue.pk], "index": "0"}
    admin_client.post(LIST, {"action": "resume_selected", **chosen})

    refreshed = admin_client.get(LIST, headers={"X-Tenantqueue-Refresh": "1"})

    assert "1 tenant queue changed" not in text_of(refreshed)
    assert "1 tenant queue changed" in text_of(admin_client.get(LIST))


GONE = {"BACKEND": "django_tenantqueue.contrib.celery.CeleryExecutor"}


@pytest.mark.parametrize("known", [{}, {"other": GONE}])
def test_page_keeps_an_executor_that_is_not_in_the_settings(
    admin_client: Client, known: dict[str, Any], settings: Any
) -> None:
    settings.TENANTQUEUE = {"EXECUTORS": known}
    queue = make_queue("acme", "reports", executor="gone")
    values = show(admin_client, page_of(queue))

    response = save(admin_client, values, page_of(queue), num_slots="7")

    assert response.status_code == 302
    queue.refresh_from_db()
    assert (queue.num_slots, queue.executor) == (7, "gone")


def test_page_changes_and_clears_the_executor(admin_client: Client, settings: Any) -> None:
    settings.TENANTQUEUE = {"EXECUTORS": {"other": GONE}}
    queue = make_queue("acme", "reports", executor="gone")
    for chosen, executor in (("other", "other"), ("", None)):
        values = show(admin_client, page_of(queue))
        assert save(admin_client, values, page_of(queue), executor=chosen).status_code == 302
        queue.refresh_from_db()
        assert queue.executor == executor
