"""The list of jobs: filters, pages, and what it never does."""

from __future__ import annotations

import html
import re
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_tenantqueue.admin import job_list_filters
from django_tenantqueue.admin.jobs import JobAdmin
from django_tenantqueue.states import State
from django_tenantqueue.status import job_pages
from django_tenantqueue.status.display_limits import LINE
from tests.factories import make_job, make_jobs, make_queue

from .conftest import text_of

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/job/"


def shown(client: Client, query: str = "") -> list[int]:
    """Return the ids on a page, in its order."""
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return [int(i) for i in re.findall(r'name="_selected_action" value="(\d+)"', page(response))]


def page(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined]


def link(response: object, label: str) -> str | None:
    found = re.search(rf'<a [^>]*href="\?([^"]*)"[^>]*>[^<]*{label}', page(response))
    return html.unescape(found[1]) if found else None


def test_newest_come_first_from_both_leaves(admin_client: Client) -> None:
    queue = make_queue()
    ids = [
        make_job(queue, state=state).pk
        for state in (State.SUCCESS, State.READY, State.ERROR, State.RUNNING)
    ]

    assert shown(admin_client) == ids[::-1]


def test_filter_takes_blanks_around_a_name_as_they_are(admin_client: Client) -> None:
    jobs = {
        (tenant, name): make_job(make_queue(tenant, name)).pk
        for tenant in ("acme", " acme ")
        for name in ("mail", " mail")
    }

    assert shown(admin_client, "tenant=+acme+&queue=+mail") == [jobs[" acme ", " mail"]]
    assert shown(admin_client, "tenant=acme&queue=mail") == [jobs["acme", "mail"]]
    assert shown(admin_client, "tenant=acme+") == []


@pytest.mark.heavy
def test_every_filter_combines_with_every_other(admin_client: Client) -> None:
    made = {}
    for tenant in ("acme", "zeta"):
        for name in ("default", "reports"):
            queue = make_queue(tenant, name)
            for state in State:
                for task in ("app.first", "app.second"):
                    job = make_job(queue, state=state, task=task)
                    made[job.pk] = (tenant, name, state, task, queue.pk)
    groups = {
        "unfinished": {"scheduled", "held", "ready", "queued", "running"},
        "active": {"queued", "running"},
        "finished": {"success", "error", "cancelled"},
        **{state.value: {state.value} for state in State},
        "": {state.value for state in State},
    }
    for state, states in groups.items():
        for tenant in ("", "acme"):
            for name in ("", "reports"):
                for task in ("", "app.second"):
                    query = f"state={state}&tenant={tenant}&queue={name}&task={task}"
                    wanted = [
                        pk
                        for pk, row in sorted(made.items(), reverse=True)
                        if row[2] in states
                        and tenant in ("", row[0])
                        and name in ("", row[1])
                        and task in ("", row[3])
                    ]
                    assert shown(admin_client, query) == wanted, query


def test_queue_id_serves_tenants_without_a_name(admin_client: Client) -> None:
    nobody, other = make_queue(""), make_queue("acme")
    mine = make_job(nobody).pk
    make_job(other)

    assert shown(admin_client, f"queue_id={nobody.pk}") == [mine]


def test_search_finds_a_number_or_a_name(admin_client: Client) -> None:
    job = make_job(task="app.one")
    make_job(task="app.two")

    assert shown(admin_client, f"q={job.pk}") == [job.pk]
    assert shown(admin_client, "q=app.one") == [job.pk]
    assert shown(admin_client, "q=99999999999999999999999999") == []


def test_pages_lead_to_older_and_back(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobAdmin, "list_per_page", 4)
    ids = make_jobs(make_queue(), 10)[::-1]

    first = admin_client.get(LIST)
    second = admin_client.get(f"{LIST}?{link(first, 'Older')}")
    third = admin_client.get(f"{LIST}?{link(second, 'Older')}")

    assert link(first, "Newer") is None
    assert shown(admin_client, link(first, "Older") or "") == ids[4:8]
    assert shown(admin_client, link(second, "Older") or "") == ids[8:]
    assert link(third, "Older") is None
    assert shown(admin_client, link(third, "Newer") or "") == ids[4:8]
    assert shown(admin_client, link(second, "Newer") or "") == ids[:4]
    assert shown(admin_client, link(third, "Newest") or "") == ids[:4]


def test_page_says_how_far_it_looked_when_filters_share_no_index(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", 5)
    monkeypatch.setattr(JobAdmin, "list_per_page", 3)
    queue = make_queue()
    wanted = make_job(queue, state=State.SUCCESS, task="app.rare").pk
    make_jobs(queue, 20, state=State.READY, task="app.common")

    found: list[int] = []
    query = "task=app.rare"
    looked = 0
    while True:
        response = admin_client.get(f"{LIST}?{query}")
        found += shown(admin_client, query)
        further = link(response, "Search further") or link(response, "Older")
        if further is None:
            break
        assert "No such job down to" in text_of(response)
        query, looked = further, looked + 1

    assert found == [wanted]
    assert 3 <= looked <= 5


@pytest.mark.parametrize(
    "query",
    [
        "",
        "state=error",
        "state=success",
        "tenant=acme",
        "queue=default&task=x",
        "task=x",
        "q=7",
        "q=x",
        "q=shop.order:1",
    ],
)
def test_list_never_counts_the_table(admin_client: Client, query: str) -> None:
    make_jobs(make_queue("acme"), 5)
    make_jobs(make_queue("zeta"), 5, state=State.ERROR)

    with CaptureQueriesContext(connection) as captured:
        shown(admin_client, query)

    for entry in captured.captured_queries:
        sql = re.sub(r"--[^\n]*", "", entry["sql"])
        assert "DISTINCT" not in sql
        assert not re.search(r"COUNT\(", sql.split("WITH")[0], re.IGNORECASE)
        if "tenantqueue_job" in sql:
            assert "LIMIT" in sql or " IN (" in sql, sql
    assert len(captured) <= 18


def test_list_reads_no_large_columns(admin_client: Client) -> None:
    make_job(state=State.SUCCESS, result={"big": "x" * 1000})

    with CaptureQueriesContext(connection) as captured:
        shown(admin_client)

    columns = [entry["sql"] for entry in captured if '"tenantqueue_job"."task"' in entry["sql"]]
    assert len(columns) == 1
    assert '"args"' not in columns[0]
    assert '"result"' not in columns[0]
    assert re.sub(r'"errors" #>> \'{-1,(class|message)}\'', "", columns[0]).count('"errors"') == 0


@pytest.mark.parametrize(
    ("parameter", "said"),
    [("q", "No job matches"), ("queue_id", "There is no queue 999"), ("before", "noop")],
)
def test_numbers_that_python_does_not_read_are_not_found(
    admin_client: Client, parameter: str, said: str
) -> None:
    make_job()

    response = admin_client.get(f"{LIST}?{parameter}={'9' * 5000}")

    assert response.status_code == 200
    assert said in page(response)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("state=lost", "Unknown state &#x27;lost&#x27;"),
        ("tenant=acme", "Tenant &#x27;acme&#x27; has no queue"),
        ("queue=reports", "No tenant has a queue called &#x27;reports&#x27;"),
        ("tenant=acme&queue=x", "Tenant &#x27;acme&#x27; has no queue called &#x27;x&#x27;"),
        ("queue_id=77", "There is no queue 77"),
        ("queue_id=abc", "There is no queue abc"),
        ("task=app.none", "No job matches"),
        ("before=abc&trail=x.y", "There are no jobs yet"),
    ],
)
def test_what_cannot_be_found_is_said(admin_client: Client, query: str, said: str) -> None:
    assert said in page(admin_client.get(f"{LIST}?{query}"))


def test_too_many_queues_ask_for_a_tenant(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "QUEUES_MOST", 2)
    monkeypatch.setattr("django_tenantqueue.status.job_filters.QUEUES_MOST", 2)
    make_queue("acme"), make_queue("zeta")

    assert "More than 2 queues are called" in page(admin_client.get(f"{LIST}?queue=default"))


def test_a_job_whose_queue_row_is_gone_is_listed(admin_client: Client) -> None:
    job = make_job(123456)

    assert shown(admin_client) == [job.pk]
    assert "queue 123456, deleted" in page(admin_client.get(LIST))


def test_rows_tell_what_happened(admin_client: Client) -> None:
    make_job(state=State.RUNNING, progress_done=41, progress_total=100)

    text = text_of(admin_client.get(LIST))

    assert "running" in text
    assert "41 %" in text
    assert "1 / 5" in text


def row(client: Client, query: str = "") -> str:
    body = page(client.get(f"{LIST}?{query}")).split("<tbody>")[1].split("</tr>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_row_tells_the_class_and_the_first_line_of_the_last_error(admin_client: Client) -> None:
    first = {"class": "KeyError", "message": "an older one"}
    last = {
        "class": "ValueError",
        "message": "<b>no</b>\nsecond line",
        "traceback": "the whole trace",
    }
    queue = make_queue()
    for state in (State.ERROR, State.SCHEDULED, State.RUNNING):
        make_job(queue, state=state, errors=[first, last])

        assert "ValueError <b>no</b>" in row(admin_client)
        assert "second line" not in page(admin_client.get(LIST))
        assert "the whole trace" not in page(admin_client.get(LIST))
        assert "older one" not in page(admin_client.get(LIST))
    make_job(queue, state=State.SUCCESS, errors=[last])
    assert "ValueError" not in row(admin_client)


def test_long_error_is_cut(admin_client: Client) -> None:
    make_job(state=State.ERROR, errors=[{"class": "E", "message": "x" * 10_000}])

    assert f"E {'x' * (LINE - 1)}…" in row(admin_client)


@pytest.mark.parametrize("errors", [[], [None], ["text"], [{"class": 1}], [{"message": "\n\n"}]])
def test_errors_that_are_no_errors_are_shown_as_far_as_they_go(
    admin_client: Client, errors: list[object]
) -> None:
    make_job(state=State.ERROR, errors=errors)

    assert "error" in row(admin_client)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"held_by": "session", "session_key": "a/b"}, "held: session"),
        ({"held_by": "task", "session_key": None}, "held: task"),
        ({"held_by": "limit_user", "limit_user": "a/b", "session_key": None}, "held: user limit"),
    ],
)
def test_row_of_a_held_job_names_its_gate(
    admin_client: Client, columns: dict[str, str], said: str
) -> None:
    make_job(state=State.HELD, **columns)

    assert said in row(admin_client)


def counts(client: Client, query: str = "") -> dict[str, str]:
    found = re.findall(
        r'class="tq-count" data-of="(\w+)">([^<]*)<', page(client.get(f"{LIST}?{query}"))
    )
    return dict(found)


def test_filter_counts_unfinished_states_up_to_a_limit(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue()
    make_jobs(queue, 5)
    make_jobs(queue, 2, state=State.RUNNING)
    make_jobs(make_queue(), 1)
    make_jobs(queue, 3, state=State.ERROR)
    make_jobs(queue, 1, state=State.HELD)

    assert counts(admin_client) == {"active": "2", "ready": "6", "scheduled": "0", "held": "1"}
    assert counts(admin_client, f"queue_id={queue.pk}") == {"active": "2", "ready": "5"}
    assert counts(admin_client, "tenant=acme") == {}
    assert counts(admin_client, "q=x") == {}
    monkeypatch.setattr(job_list_filters, "COUNTED_TO", 4)
    assert counts(admin_client)["ready"] == "4+"


def test_tenants_and_queues_are_suggested(admin_client: Client) -> None:
    make_queue('ac"me', "mail")
    make_queue("zeta", "reports")

    content = page(admin_client.get(LIST))
    of_zeta = page(admin_client.get(f"{LIST}?tenant=zeta")).split('id="tq-queue-names">')[1]

    assert '<option value="ac&quot;me">' in content.split('id="tq-tenants">')[1]
    assert '<option value="reports">' in content.split('id="tq-queue-names">')[1]
    assert 'list="tq-tenants"' in content
    assert '<option value="reports">' in of_zeta
    assert '<option value="mail">' not in of_zeta


@pytest.mark.parametrize(
    "text", ["REPORT", "monthly", "a0815", "of Zoë", '"year": 2024', "tasks.build_rep"]
)
@pytest.mark.parametrize("state", [State.READY, State.SUCCESS])
def test_search_finds_a_part_of_the_name_a_label_or_an_argument(
    admin_client: Client, text: str, state: State
) -> None:
    args = {"args": ["A0815", "of Zoë"], "kwargs": {"year": 2024}}
    wanted = make_job(state=state, task="app.tasks.build_report", args=args, labels=["monthly"])
    make_job(state=state, task="app.tasks.other", labels=["daily"])

    assert shown(admin_client, urlencode({"q": text})) == [wanted.pk]


def test_search_for_a_text_combines_with_the_filters(admin_client: Client) -> None:
    acme, zeta = make_queue("acme"), make_queue("zeta")
    first = make_job(acme, task="app.reports.build")
    make_job(zeta, task="app.reports.build")
    make_job(acme, task="app.reports.build", state=State.ERROR)

    assert shown(admin_client, "q=reports&tenant=acme&state=ready") == [first.pk]
    assert shown(admin_client, "q=reports&task=app.other") == []


def test_search_for_the_whole_name_of_a_task_finds_no_longer_names(admin_client: Client) -> None:
    short = make_job(state=State.SUCCESS, task="app.tasks.send")
    make_job(state=State.SUCCESS, task="app.tasks.send_all")

    assert shown(admin_client, "q=app.tasks.send") == [short.pk]


def test_search_finds_the_jobs_of_an_object(admin_client: Client) -> None:
    source = {"source_type": "shop.order", "source_id": "17"}
    finished = make_job(state=State.SUCCESS, **source)
    waiting = make_job(**source)
    make_job(source_type="shop.order", source_id="171")
    make_job(source_type="shop.item", source_id="17")

    assert shown(admin_client, "q=shop.Order:17") == [waiting.pk, finished.pk]
    assert shown(admin_client, "q=shop.order:17&state=success") == [finished.pk]


def test_search_for_a_text_says_how_far_it_has_looked(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", 3)
    wanted = make_job(task="app.tasks.rare")
    make_jobs(wanted.queue, 4, task="app.tasks.usual")

    response = admin_client.get(f"{LIST}?q=rare")

    assert "No such job down to" in text_of(response)
    assert shown(admin_client, html.unescape(str(link(response, "Search further")))) == [wanted.pk]


@pytest.mark.parametrize(
    ("query", "state"),
    [
        ("tenant=acme&state=ready", State.READY),
        ("tenant=acme&task=app.fly&state=ready", State.READY),
        ("tenant=acme", State.SUCCESS),
        ("tenant=acme&task=app.fly", State.SUCCESS),
        ("task=app.fly", State.SUCCESS),
        ("state=scheduled", State.SCHEDULED),
        ("state=active", State.RUNNING),
        ("state=error", State.ERROR),
    ],
)
def test_search_for_a_text_looks_at_what_the_filters_select(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, query: str, state: State
) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", 3)
    wanted = make_job(make_queue("acme"), task="app.fly", state=state, args={"args": ["LGA"]})
    other = State.READY if state is State.READY else State.SUCCESS
    make_jobs(make_queue(), 5, task="app.other", state=other)

    assert shown(admin_client, f"{query}&q=LGA") == [wanted.pk]
    assert shown(admin_client, f"{query}&q=JFK") == []


@pytest.mark.parametrize("text", ["%", "100%", "\\", "'", "_", "(", ":", "a.b:"])
def test_search_for_odd_texts_finds_nothing(admin_client: Client, text: str) -> None:
    make_job(task="app", args={})

    assert shown(admin_client, urlencode({"q": text})) == []
