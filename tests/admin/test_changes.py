"""The list of changes, the history of an object, and in whose name the admin acts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from django_tenantqueue.admin import changes as page
from django_tenantqueue.models import Change, TaskControl, TenantQueue
from django_tenantqueue.operations import control, worker_control
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.states import State
from tests.factories import cap_task, made_changes, make_duty, make_jobs, make_queue, make_worker
from tests.testapp.tasks import noop

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/change/"
EVIL = "<script>alert(1)</script>&'\""


def make_change(**columns: Any) -> Change:
    values = {"source": "code", "action": "tune", "object_kind": "queue", "object_ids": [1]}
    return Change.objects.create(**{**values, **columns})


def shown(client: Client, query: str = "") -> list[str]:
    """Return the names of the objects that a page of the list shows."""
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return [change.object_label for change in response.context["cl"].result_list]


def test_list_tells_who_changed_what_and_from_where(admin_client: Client) -> None:
    queue = make_queue("acme", num_slots=3)
    with acting_as("ada", "command"):
        control.tune_queue(queue.pk, num_slots=7)

    response = admin_client.get(LIST)

    assert " ada command tuned acme / default tenant queue slots 3 → 7" in text_of(response)
    assert url_of("tenantqueue", "change", queue.pk) in response.content.decode()


def test_cancellation_says_what_the_jobs_were(admin_client: Client) -> None:
    control.cancel(make_jobs(make_queue("acme"), 1500))

    text = text_of(admin_client.get(LIST))

    assert "cancelled 1500 jobs tests.testapp.tasks.noop state was ready cancelled 1500" in text


def test_newest_change_comes_first_and_older_ones_follow(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page.ChangeAdmin, "list_per_page", 2)
    for number in range(5):
        make_change(object_label=str(number))

    first = admin_client.get(LIST).context["cl"]
    assert shown(admin_client) == ["4", "3"]
    assert first.newest_link is None
    second = admin_client.get(LIST + first.older_link)
    assert "‹" not in text_of(second)
    assert [change.object_label for change in second.context["cl"].result_list] == ["2", "1"]
    last = admin_client.get(LIST + second.context["cl"].older_link).context["cl"]
    assert [change.object_label for change in last.result_list] == ["0"]
    assert (last.older_link, last.newest_link) == (None, "?")


@pytest.mark.parametrize(
    "query",
    [
        "object_kind=worker",
        "source__exact=api",
        "action__exact=stop",
        "actor=ada",
        "tenant=acme",
        "q=other",
    ],
)
def test_list_is_filtered(admin_client: Client, query: str) -> None:
    make_change(object_label="one")
    make_change(
        object_kind="worker",
        source="api",
        action="stop",
        actor="ada",
        tenant="acme",
        object_label="other",
    )

    assert shown(admin_client) == ["other", "one"]
    assert shown(admin_client, query) == ["other"]


def test_filters_without_a_match_say_so(admin_client: Client) -> None:
    make_change()

    assert "No change matches." in text_of(admin_client.get(f"{LIST}?actor=nobody"))


def test_empty_list_says_what_fills_it(admin_client: Client) -> None:
    assert "Nothing has been changed yet." in text_of(admin_client.get(LIST))


def test_page_is_bounded_when_filters_have_no_index_in_common(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "READ", 3)
    make_change(object_label="old", actor="ada", source="api")
    for _ in range(4):
        make_change(actor="ada")
    query = "actor=ada&source__exact=api"

    assert shown(admin_client, query) == []
    response = admin_client.get(f"{LIST}?{query}")
    assert "No such change down to" in text_of(response)
    older = response.context["cl"].older_link

    assert shown(admin_client, older.removeprefix("?")) == ["old"]
    assert shown(admin_client, "source__exact=api") == ["old"]


@pytest.mark.parametrize("before", ["0", "abc", "9" * 30, "-1"])
def test_list_is_shown_whatever_the_address_says(admin_client: Client, before: str) -> None:
    make_change(object_label="one")

    assert shown(admin_client, f"before={before}") in ([], ["one"])


def test_search_finds_nothing_when_it_cannot_be_stored(admin_client: Client) -> None:
    assert admin_client.get(f"{LIST}?q=%00").status_code == 200
    assert admin_client.get(f"{LIST}?actor=%00").status_code == 200


def test_list_counts_nothing_and_asks_as_often_for_many(admin_client: Client) -> None:
    for number in range(100):
        make_change(object_label=str(number))

    with CaptureQueriesContext(connection) as queries:
        assert len(shown(admin_client)) == 100

    assert not [q for q in queries if "COUNT(" in q["sql"].upper()]
    assert len(queries) < 10


def test_list_needs_the_permission(operator: Callable[..., Client]) -> None:
    change = make_change()

    assert operator("view_tenantqueue").get(LIST).status_code == 403
    assert operator("view_change").get(LIST).status_code == 200
    own = url_of("change", "change", change.pk)
    assert operator("view_tenantqueue").get(own).status_code == 403
    assert operator("view_change").get(own).status_code == 200


def test_nothing_can_be_set_added_or_deleted(admin_client: Client) -> None:
    change = make_change()
    own = url_of("change", "change", change.pk)

    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.post(url_of("change", "delete", change.pk)).status_code == 403
    assert admin_client.post(own, {"actor": "eve"}).status_code == 403
    assert 'name="_save"' not in admin_client.get(own).content.decode()
    assert 'name="action"' not in admin_client.get(LIST).content.decode()


def test_history_needs_the_permission_for_its_object(operator: Callable[..., Client]) -> None:
    url = url_of("tenantqueue", "history", make_queue().pk)

    assert operator("view_change").get(url).status_code == 403
    assert operator("view_tenantqueue").get(url).status_code == 200


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_list_is_shown_whatever_time_a_change_names(admin_client: Client, zone: str) -> None:
    moments = ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"]
    make_change(after={"starts_at": moments[0], "ends_at": moments[1]})

    with override_settings(TIME_ZONE=zone):
        text = text_of(admin_client.get(LIST))

    assert all(moment in text for moment in moments)


def test_hostile_strings_are_escaped(admin_client: Client) -> None:
    queue = make_queue(EVIL, EVIL)
    with acting_as(EVIL):
        control.retire([queue.pk])
    hostile = {EVIL: EVIL}
    make_change(
        source=EVIL,
        action=EVIL,
        object_kind=EVIL,
        object_label=EVIL,
        object_ids=[1, 2],
        object_count=2,
        before=hostile,
        after={**hostile, "list": [EVIL]},
    )
    make_change(before=[EVIL], after=EVIL)

    pages = [
        LIST,
        *(url_of("change", "change", change.pk) for change in Change.objects.all()),
        url_of("tenantqueue", "history", queue.pk),
    ]

    for address in pages:
        response = admin_client.get(address)
        assert response.status_code == 200
        assert "<script>alert" not in response.content.decode()
    assert "&lt;script&gt;alert" in admin_client.get(pages[-1]).content.decode()


def test_history_of_an_object_shows_its_changes_from_anywhere(admin_client: Client) -> None:
    queue, other = make_queue("acme", num_slots=3), make_queue("zeta")
    with acting_as("ada", "api"):
        control.tune_queue(queue.pk, num_slots=None)
    control.pause([queue.pk, other.pk])

    text = text_of(admin_client.get(url_of("tenantqueue", "history", queue.pk)))

    assert "ada API tuned acme / default tenant queue slots 3 → nothing" in text
    assert "– code paused 2 tenant queues acme / default, zeta / default" in text
    other_text = text_of(admin_client.get(url_of("tenantqueue", "history", other.pk)))
    assert "ada" not in other_text


def test_history_of_an_object_without_changes_says_so(admin_client: Client) -> None:
    url = url_of("worker", "history", make_worker().pk)

    assert "No change of this object is recorded." in text_of(admin_client.get(url))


def test_history_of_what_is_never_changed_is_empty(admin_client: Client) -> None:
    pages = [
        url_of("duty", "history", make_duty().pk),
        url_of("change", "history", make_change().pk),
    ]

    for page_url in pages:
        assert "No change of this object is recorded." in text_of(admin_client.get(page_url))


def test_history_has_pages(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_tenantqueue.admin.base.HISTORY_PAGE", 2)
    worker = make_worker()
    for number in range(3):
        make_change(object_kind="worker", object_ids=[worker.pk], actor=f"user-{number}")
    url = url_of("worker", "history", worker.pk)

    first = admin_client.get(url)
    assert "user-2" in text_of(first)
    assert "user-0" not in text_of(first)
    second = admin_client.get(f"{url}?before={first.context['older']}")
    assert "user-0" in text_of(second)
    assert "user-1" not in text_of(second)
    assert second.context["older"] is None


def test_history_of_what_does_not_exist_leads_back(admin_client: Client) -> None:
    response = admin_client.get(url_of("tenantqueue", "history", 4711), follow=True)

    assert "doesn’t exist" in text_of(response)


def test_bulk_of_100_jobs_is_one_entry_of_the_user_and_none_of_django(
    admin_client: Client,
) -> None:
    failed = make_jobs(make_queue(), 100, state=State.ERROR)
    data = {"action": "retry_selected", "_selected_action": failed, "index": "0"}

    admin_client.post("/admin/tenantqueue/job/", data)

    change = Change.objects.get()
    assert (change.actor, change.source, change.object_count) == ("admin", "admin", 100)
    assert change.object_ids == failed
    assert not LogEntry.objects.exists()
    assert "100 jobs" in text_of(admin_client.get(url_of("job", "history", failed[-1])))


def test_saved_page_of_a_queue_is_one_entry_of_the_user(operator: Callable[..., Client]) -> None:
    queue = make_queue(num_slots=3)
    client = operator("view_tenantqueue", "change_tenantqueue")
    data = {"num_slots": "7", "weight": "1", "initial-num_slots": "3", "initial-weight": "1"}

    client.post(url_of("tenantqueue", "change", queue.pk), data)

    assert made_changes() == [("tune", {"num_slots": 3}, {"num_slots": 7})]
    assert Change.objects.get().actor.startswith("operator-")
    assert not LogEntry.objects.exists()


def test_added_and_deleted_rows_are_recorded(admin_client: Client) -> None:
    queue = {"tenant": "acme", "name": "mail", "num_slots": "2", "weight": "1", "_save": "1"}
    admin_client.post(url_of("tenantqueue", "add"), queue)
    control_url = url_of("taskcontrol", "add")
    admin_client.post(control_url, {"task": noop.name, "paused": "on", "_save": "1"})
    admin_client.post(
        url_of("userlimit", "add"), {"tenant": "acme", "key": "eve", "num_slots": "2"}
    )
    pk = TaskControl.objects.get().pk
    admin_client.post(url_of("taskcontrol", "delete", pk), {"post": "yes"})

    assert TenantQueue.objects.filter(name="mail").exists()
    assert made_changes() == [
        ("add", {}, {"num_slots": 2, "weight": 1}),
        ("add", {}, {"paused": True}),
        ("add", {}, {"num_slots": 2}),
        ("delete", {"paused": True}, {}),
    ]
    assert set(Change.objects.values_list("actor", "source")) == {("admin", "admin")}
    assert not LogEntry.objects.exists()


def test_deletion_action_leaves_one_entry(admin_client: Client) -> None:
    rows = [cap_task(f"task{number}", 3, allow_unknown=True) for number in range(3)]
    Change.objects.all().delete()
    data = {
        "action": "delete_selected",
        "_selected_action": [row.pk for row in rows],
        "post": "yes",
    }

    admin_client.post("/admin/tenantqueue/taskcontrol/", data)

    change = Change.objects.get()
    assert (change.action, change.object_count, change.actor) == ("delete", 3, "admin")
    assert not LogEntry.objects.exists()


def test_object_without_a_page_is_shown_without_a_link(admin_client: Client) -> None:
    make_change(object_kind="job", object_ids=[17], object_label="app.tasks.send")
    worker_control.drain([make_worker().pk])

    assert "app.tasks.send #17" in text_of(admin_client.get(LIST))


def test_old_change_of_a_kind_that_is_gone_is_listed_by_the_name_of_the_kind(
    admin_client: Client,
) -> None:
    make_change(object_kind="status_links", object_label="acme / 7", after={"before": "2026"})

    text = text_of(admin_client.get(LIST))

    assert "acme / 7 status_links" in text
