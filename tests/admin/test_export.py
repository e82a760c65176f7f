"""Downloads of lists: which rows, in which form, and at which cost."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.sites import site
from django.contrib.auth.models import User
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import AsyncRequestFactory, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.admin.export import cell
from django_tenantqueue.gate_keys import gate_key
from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    Job,
    Session,
    TaskControl,
    TenantQueue,
    Worker,
)
from django_tenantqueue.states import FINAL, UNFINISHED, State
from django_tenantqueue.status import job_pages
from django_tenantqueue.status.stored_rows import plain
from django_tenantqueue.testing import run_pending
from tests.factories import make_duty, make_job, make_jobs, make_queue, make_worker
from tests.operations.monitors import start
from tests.testapp.tasks import fail, noop

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db
MODELS = {
    "job": "jobs",
    "tenantqueue": "tenant-queues",
    "session": "sessions",
    "concurrentjobmonitor": "monitors",
    "userlimit": "user-limits",
    "worker": "workers",
    "taskcontrol": "task-controls",
    "duty": "duties",
}


def fetch(client: Client, model: str, form: str = "csv", query: str = "") -> StreamingHttpResponse:
    response = client.get(f"{url_of(model, 'export', form)}?{query}")
    assert response.status_code == 200
    assert isinstance(response, StreamingHttpResponse)
    return response


def rows_of(client: Client, model: str, query: str = "") -> list[dict[str, Any]]:
    """Return the rows of a download as JSON lines, once those as CSV are seen to be the same."""
    lines = fetch(client, model, "jsonl", query).getvalue().decode().splitlines()
    table = list(
        csv.DictReader(io.StringIO(fetch(client, model, "csv", query).getvalue().decode()))
    )
    rows = [json.loads(line) for line in lines]
    assert [row.get("id") for row in table] == [
        str(row["id"]) if "id" in row else None for row in rows
    ]
    assert [list(row) for row in table] == [list(row) for row in rows]
    return rows


def ids_of(client: Client, model: str, query: str = "") -> list[int]:
    return [row["id"] for row in rows_of(client, model, query)]


def make_line(tenant: str, key: str, kind: str = "serial", **columns: Any) -> Session:
    return Session.objects.create(
        kind=kind, tenant=tenant, key=key, gate_key=gate_key(tenant, key), **columns
    )


# what a file has


def test_file_is_called_after_the_list_and_the_day(admin_client: Client) -> None:
    day = timezone.localdate().isoformat()
    for model, name in MODELS.items():
        for form, kind in (("csv", "text/csv; charset=utf-8"), ("jsonl", "application/x-ndjson")):
            response = fetch(admin_client, model, form)
            assert response["Content-Disposition"] == f'attachment; filename="{name}-{day}.{form}"'
            assert response["Content-Type"] == kind
    assert admin_client.get(url_of("job", "export", "xml")).status_code == 404


def test_columns_are_those_that_are_stored(admin_client: Client) -> None:
    with connection.cursor() as cursor:
        for model in MODELS:
            head = fetch(admin_client, model).getvalue().decode().splitlines()[0].split(",")
            table = site.get_model_admin(_model(model)).model._meta.db_table
            cursor.execute("SELECT * FROM " + connection.ops.quote_name(table) + " LIMIT 0")
            stored = {column.name for column in cursor.description}
            assert set(head) - {"tenant", "queue"} == stored - {"tenant", "search"}


def _model(name: str) -> Any:
    return next(model for model in site._registry if model._meta.model_name == name)


def test_times_are_iso_and_json_is_kept(admin_client: Client) -> None:
    moment = datetime(2026, 11, 24, 12, 30, tzinfo=UTC)
    job = make_job(
        make_queue("acme", "mail"),
        state=State.ERROR,
        created_at=moment,
        args={"args": [{"deep": ["ünïcode", None]}]},
        errors=[{"message": "no"}],
        timeout_seconds=2.5,
    )

    (row,) = rows_of(admin_client, "job")
    table = csv.DictReader(io.StringIO(fetch(admin_client, "job").getvalue().decode()))
    (cells,) = table

    assert row["id"] == job.pk
    assert (row["tenant"], row["queue"], row["queue_id"]) == ("acme", "mail", job.queue_id)
    assert row["created_at"] == cells["created_at"] == "2026-11-24T12:30:00+00:00"
    assert row["args"] == {"args": [{"deep": ["ünïcode", None]}]}
    assert json.loads(cells["args"]) == row["args"]
    assert "ünïcode" in cells["args"]
    assert (row["timeout_seconds"], cells["timeout_seconds"]) == (2.5, "2.5")
    assert (row["final"], cells["final"]) == (True, "true")
    assert (row["expires_at"], cells["expires_at"]) == (None, "")


def test_job_of_a_deleted_queue_is_in_the_file(admin_client: Client) -> None:
    job = make_job(123456)

    (row,) = rows_of(admin_client, "job")

    assert (row["id"], row["tenant"], row["queue"]) == (job.pk, None, None)


@pytest.mark.parametrize(
    "hostile",
    [
        "=cmd|' /C calc'!A0",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff201",
    ],
)
def test_cell_that_a_spreadsheet_would_run_has_an_apostrophe(
    admin_client: Client, hostile: str
) -> None:
    make_queue(hostile, 'a,"b"\r\nc')
    make_job(task=hostile, args={"args": [hostile]})

    for model, column in (("tenantqueue", "tenant"), ("job", "task")):
        text = fetch(admin_client, model).getvalue().decode()
        values = [row[column] for row in csv.DictReader(io.StringIO(text, newline=""))]
        assert f"'{hostile}" in values
        assert hostile not in values
    rows = rows_of(admin_client, "job")
    assert (rows[0]["task"], rows[0]["args"]) == (hostile, {"args": [hostile]})


def test_values_that_cells_keep() -> None:
    assert cell(-5) == "-5"
    assert cell(-2.5) == "-2.5"
    assert cell('plain, "text" <b>') == 'plain, "text" <b>'
    assert cell("=1", is_json=True) == '"=1"'
    assert cell(["=1", "a"]) == '["=1", "a"]'
    assert cell(timedelta(minutes=1.5)) == "90.0"
    assert plain(float("inf")) == "inf"


def test_there_is_no_byte_order_mark(admin_client: Client) -> None:
    assert fetch(admin_client, "job").getvalue().startswith(b"id,queue_id,")


# which rows


@pytest.fixture
def listed() -> None:
    """Make rows of each list that its filters tell apart."""
    for tenant, paused in (("acme", True), ("zeta", False)):
        make_queue(tenant, "mail", paused=paused, retired=not paused)
        make_line(tenant, "s", paused=paused, halted_at=timezone.now() if paused else None)
        make_line(tenant, "u", "limit_user", paused=paused, num_slots=1)
        TaskControl.objects.create(task=f"{tenant}.task", paused=paused)
        make_worker(name=f"{tenant}:1", host=tenant)
        monitor = start([], tenant=tenant, keep_open=True)
        ConcurrentJobMonitor.objects.filter(pk=monitor.pk).update(
            name=tenant, paused=paused, cancelled_at=timezone.now() if paused else None
        )


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("model", "queries"),
    [
        ("tenantqueue", ["", "trouble=paused", "retired__exact=1", "queue=mail", "q=acme"]),
        ("session", ["", "paused__exact=1", "halted=yes", "halted=no", "tenant=zeta", "q=s"]),
        ("userlimit", ["", "paused__exact=0", "tenant=acme", "q=none"]),
        ("concurrentjobmonitor", ["", "paused__exact=1", "cancelled=no", "tenant=acme", "q=zet"]),
        ("worker", ["", "q=acme", "q=none"]),
        ("taskcontrol", ["", "paused__exact=1", "q=zeta"]),
    ],
)
def test_rows_are_those_of_the_page(admin_client: Client, model: str, queries: list[str]) -> None:
    sizes = set()
    for query in queries:
        page = admin_client.get(f"{url_of(model, 'changelist')}?{query}")
        shown = sorted(row.pk for row in page.context["cl"].result_list)
        assert sorted(ids_of(admin_client, model, query)) == shown, query
        sizes.add(len(shown))
        assert f'href="export/csv/{"?" + query if query else "?"}' in page.content.decode()
    assert len(sizes) > 1


def test_place_in_the_list_selects_nothing(admin_client: Client) -> None:
    ids = make_jobs(make_queue(), 5)[::-1]
    _bulk(120)  # more than a page
    queues = list(TenantQueue.objects.filter(name="q").order_by("-pk").values_list("pk", flat=True))

    assert ids_of(admin_client, "job", f"before={ids[2]}&trail={ids[0]}") == ids
    assert ids_of(admin_client, "tenantqueue", "p=9&o=1&queue=q") == queues


@pytest.mark.parametrize(
    "query",
    [
        "",
        *(f"state={name}" for name in ("unfinished", "active", "finished", "scheduled", "error")),
        "tenant=acme",
        "tenant=acme&state=ready",
        "queue=reports&task=app.second",
        "task=app.second&state=success",
        "q=app.first",
    ],
)
def test_jobs_are_those_of_all_pages(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr("django_tenantqueue.admin.job_changelist.BATCH", 4)
    monkeypatch.setattr("django_tenantqueue.admin.export.SMALL_BATCH", 3)
    for name in ("WINDOW", "SMALL_WINDOW", "READY_WINDOW"):
        monkeypatch.setattr(job_pages, name, 5)
    parts = dict(part.split("=") for part in query.split("&") if part)
    for tenant in ("acme", "zeta"):
        for name in ("default", "reports"):
            queue = make_queue(tenant, name)
            for state in State:
                for task in ("app.first", "app.second"):
                    make_jobs(queue, 2, state=state, task=task)
    states = {
        "unfinished": UNFINISHED,
        "finished": FINAL,
        "active": ("queued", "running"),
    }
    wanted = Job.objects.order_by("-pk")
    if state := parts.get("state"):
        wanted = wanted.filter(state__in=states.get(state, (state,)))
    if "tenant" in parts:
        wanted = wanted.filter(queue__tenant=parts["tenant"])
    if "queue" in parts:
        wanted = wanted.filter(queue__name=parts["queue"])
    if name := parts.get("task") or parts.get("q"):
        wanted = wanted.filter(task=name)

    found = ids_of(admin_client, "job", query)

    assert found == list(wanted.values_list("pk", flat=True))
    assert found


def test_job_is_found_by_its_number_and_nothing_where_the_list_has_a_problem(
    admin_client: Client,
) -> None:
    job, _ = make_job(), make_job()

    assert ids_of(admin_client, "job", f"q={job.pk}") == [job.pk]
    assert ids_of(admin_client, "job", "tenant=none") == []
    assert fetch(admin_client, "job", query="tenant=none").getvalue().count(b"\n") == 1


def test_filter_that_there_is_not_leads_back_to_the_list(admin_client: Client) -> None:
    response = admin_client.get(url_of("tenantqueue", "export", "csv"), {"retired__exact": "x"})

    assert response.status_code == 302
    assert admin_client.get(response.url, follow=True).status_code == 200


# details of monitors


def test_details_are_those_of_the_tab(admin_client: Client) -> None:
    calls = [fail.using(max_attempts=1).call() for _ in range(3)]
    monitor = start([*calls, *(noop.call() for _ in range(40))], parallel=5, keep_open=True)
    other = start()
    with pytest.raises(RuntimeError):
        run_pending(limit=20)
    details = set(monitor.details().values_list("pk", flat=True))
    parts = ("running", "ready", "retrying", "in_line", "aside", "failed", "cancelled", "done")

    def found(query: str = "") -> list[int]:
        url = url_of("concurrentjobmonitor", "details", monitor.pk, "jsonl")
        response = admin_client.get(f"{url}?{query}")
        assert isinstance(response, StreamingHttpResponse)
        return [json.loads(line)["id"] for line in response.getvalue().decode().splitlines()]

    everything = found()
    tabs = {part: found(f"details={part}") for part in parts}
    progress = monitor.progress()

    assert len(everything) == len(details) == 43
    assert set(everything) == details
    assert {part: len(ids) for part, ids in tabs.items()} == {
        part: getattr(progress, part) for part in parts
    }
    assert sorted(i for ids in tabs.values() for i in ids) == sorted(details)
    assert other.anchor_id not in details
    page = admin_client.get(url_of("concurrentjobmonitor", "change", monitor.pk))
    assert url_of("concurrentjobmonitor", "details", monitor.pk, "csv") in page.content.decode()


def test_details_need_the_permission_to_view_jobs(operator: Callable[..., Client]) -> None:
    monitor = start()
    url = url_of("concurrentjobmonitor", "details", monitor.pk, "csv")

    assert operator("view_concurrentjobmonitor").get(url).status_code == 403
    assert operator("view_job").get(url).status_code == 403
    both = operator("view_job", "view_concurrentjobmonitor")
    assert both.get(url).status_code == 200
    assert both.get(url, {"details": "lost"}).status_code == 404
    assert both.get(url_of("concurrentjobmonitor", "details", 4711, "csv")).status_code == 404


# permission and cost


def test_download_needs_the_permission_to_view(
    operator: Callable[..., Client], client: Client
) -> None:
    without = operator()
    for model in MODELS:
        assert without.get(url_of(model, "export", "csv")).status_code == 403
        assert operator(f"view_{model}").get(url_of(model, "export", "csv")).status_code == 200
    assert "login" in client.get(url_of("job", "export", "csv")).url


def _bulk(count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenantqueue_tenantqueue (tenant, name, weight, paused, retired, "
            "created_at, burst) SELECT 't' || n, 'q', 1, false, false, now(), 1 "
            "FROM generate_series(1, %s) n",
            [count],
        )


def test_25000_rows_are_read_in_pages(admin_client: Client) -> None:
    _bulk(25_000)
    response = fetch(admin_client, "tenantqueue")

    with CaptureQueriesContext(connection) as captured:
        parts = [part.decode().count("\r\n") for part in response]

    assert parts == [1, *([1000] * 25)]  # at no time more than a page
    assert len(captured) == 26
    assert all("LIMIT 1000" in entry["sql"] for entry in captured)
    assert "OFFSET" not in str(captured.captured_queries)


def test_25000_jobs_are_read_in_pages(admin_client: Client) -> None:
    make_jobs(make_queue(), 20_000)
    make_jobs(make_queue(), 5_000, state=State.SUCCESS)
    response = fetch(admin_client, "job", "jsonl")

    with CaptureQueriesContext(connection) as captured:
        parts = [part.count(b"\n") for part in response]

    assert sum(parts) == 25_000
    assert max(parts) == 100
    reads = [entry["sql"] for entry in captured if '"tenantqueue_job"."task"' in entry["sql"]]
    assert len(reads) == 250
    assert not [entry["sql"] for entry in captured if "COUNT(*)" in entry["sql"]]
    assert not connection.needs_rollback


def test_client_that_disconnects_stops_the_reads(admin_client: Client) -> None:
    make_jobs(make_queue(), 3000)
    response = fetch(admin_client, "job")
    parts = iter(response)
    next(parts), next(parts)

    with CaptureQueriesContext(connection) as captured:
        response.close()
        rest = list(parts)

    assert rest == []
    assert len(captured) == 0


def test_asgi_server_gets_an_asynchronous_stream(admin_user: User) -> None:
    ids = make_jobs(make_queue(), 250)
    request = AsyncRequestFactory().get("/")
    request.user = admin_user
    response = site.get_model_admin(Job).export_view(request, "jsonl")  # type: ignore[attr-defined]
    assert response.is_async

    async def read() -> list[bytes]:
        return [part async for part in response]

    parts = async_to_sync(read)()  # its steps run in this thread

    assert [part.count(b"\n") for part in parts] == [100, 100, 50]
    assert json.loads(parts[0].splitlines()[0])["id"] == ids[-1]


def test_empty_list_is_an_empty_file(admin_client: Client) -> None:
    assert not TenantQueue.objects.exists()
    assert not Worker.objects.exists()
    assert ids_of(admin_client, "tenantqueue") == []
    make_duty()
    (line,) = fetch(admin_client, "duty", "jsonl").getvalue().splitlines()
    assert json.loads(line)["name"] == "promote"
    assert "JSON lines" in text_of(admin_client.get(url_of("worker", "changelist")))
