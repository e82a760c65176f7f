"""The jobs of a user, a tenant or a model instance, page by page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.exceptions import InvalidArgument
from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from django_tenantqueue.status.your_jobs import YourJobs, your_jobs
from tests.factories import make_job, make_jobs, make_queue
from tests.testapp.models import Plain, Report
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db
STATES = (State.SUCCESS, State.READY, State.ERROR, State.SCHEDULED, State.CANCELLED)


def ids_of(page: YourJobs) -> list[int]:
    return [row.job.pk for row in page.jobs]


def walk(**options: Any) -> Iterator[int]:
    before = None
    while True:
        page = your_jobs(before=before, size=2, **options)
        assert len(page.jobs) <= 2
        yield from ids_of(page)
        if page.older is None:
            return
        before = str(page.older)


def test_jobs_of_a_user_are_found_in_all_states_the_newest_first(django_user_model: Any) -> None:
    user = django_user_model.objects.create_user("ada")
    queue = make_queue()
    mine = [make_job(queue, state=state, created_by=str(user.pk)).pk for state in STATES]
    make_jobs(queue, 3, created_by="another")
    make_jobs(queue, 3)

    assert list(walk(user=user)) == mine[::-1]
    assert list(walk(user=str(user.pk))) == mine[::-1]


def test_jobs_of_a_tenant_are_found_in_all_its_queues() -> None:
    queues = [make_queue("acme"), make_queue("acme", "mail")]
    ours = [make_job(queue, state=state).pk for state in STATES for queue in queues]
    make_jobs(make_queue("zeta"), 3)

    assert list(walk(tenant="acme")) == ours[::-1]
    assert list(walk(tenant="unknown")) == []


def test_jobs_of_a_user_in_a_tenant_are_those_of_both() -> None:
    acme, zeta = make_queue("acme"), make_queue("zeta")
    mine = make_jobs(acme, 3, created_by="ada")
    make_jobs(zeta, 3, created_by="ada")
    make_jobs(acme, 3, created_by="bob")

    assert list(walk(user="ada", tenant="acme")) == mine[::-1]


def test_page_is_short_and_goes_on_when_the_users_other_jobs_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("django_tenantqueue.status.job_pages.WINDOW", 4)
    acme, zeta = make_queue("acme"), make_queue("zeta")
    mine = make_jobs(acme, 3, created_by="ada")
    elsewhere = make_jobs(zeta, 9, created_by="ada")

    page = your_jobs(user="ada", tenant="acme")

    assert (page.jobs, page.older) == ((), elsewhere[-4])
    assert list(walk(user="ada", tenant="acme")) == mine[::-1]


def test_jobs_of_an_instance_are_those_of_its_methods() -> None:
    one, other = Report.objects.create(title="one"), Report.objects.create(title="other")
    plain = Plain.objects.create(pk=one.pk)
    ours = [one.delay.execute().pk, one.delay.execute("pdf").pk]
    other.delay.execute()
    noop.delay()
    make_job(source_type="testapp.plain", source_id=str(plain.pk))
    of_a_replica = make_job(source_type="testapp.report@replica", source_id=str(one.pk))

    assert list(walk(source=one)) == ours[::-1]
    one._state.db = "replica"
    assert list(walk(source=one)) == [of_a_replica.pk, *ours[::-1]]


def test_querysets_find_the_same_jobs() -> None:
    report = Report.objects.create(title="one")
    job = report.delay(created_by="ada").execute()
    noop.delay()

    assert list(Job.objects.for_source(report)) == [job]
    assert list(Job.objects.for_user("ada")) == [job]


def test_querysets_are_served_by_indexes() -> None:
    report = Report.objects.create(title="one")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    for jobs, index in (
        (Job.objects.for_source(report), "source"),
        (Job.objects.for_user("ada"), "creator"),
    ):
        assert f"tenantqueue_job_{index}" in jobs.explain()


@pytest.mark.parametrize(
    "whose", [{}, {"user": None}, {"user": "ada", "source": Report(pk=1)}], ids=str
)
def test_nothing_is_listed_when_it_is_not_said_whose(whose: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="whose jobs"):
        your_jobs(**whose)


@pytest.mark.parametrize("before", [None, "", "x", "-5", "1e9", "²", "9" * 5000])
def test_page_begins_at_the_newest_when_the_address_names_no_id(before: str | None) -> None:
    job = make_job(created_by="ada")

    page = your_jobs(user="ada", before=before)

    assert (ids_of(page), page.is_first) == ([job.pk], True)


def test_queries_and_columns_stay_the_same_when_there_are_more_jobs() -> None:
    queue = make_queue()
    result = {"result": {"large": "x" * 1000}, "created_by": "ada"}
    make_jobs(queue, 10, state=State.SUCCESS, **result)
    make_jobs(queue, 10, created_by="ada")

    counts = []
    for size in (2, 15):
        with CaptureQueriesContext(connection) as queries:
            page = your_jobs(user="ada", size=size)
        assert len(page.jobs) == size
        counts.append(len([q for q in queries if "FROM" in q["sql"] and "job" in q["sql"]]))
        for name in ("result", "args", "context", "errors"):
            assert f'"{name}"' not in queries.captured_queries[-1]["sql"]
    assert counts == [2, 3]  # the second page reaches the history


# the template

WEB = pytest.mark.urls("tests.web.urls")


def show(client: Client, **query: Any) -> str:
    return str(client.get("/list/", {"user": "ada", **query}).content.decode())


@WEB
def test_page_shows_times_and_statistics_of_each_job(client: Client) -> None:
    now = timezone.now()
    make_job(
        state=State.SUCCESS,
        created_by="ada",
        task="app.build_report",
        stats={"rows": 12, "<b>": "<i>"},
        created_at=now - timedelta(seconds=100),
        run_at=now - timedelta(seconds=100),
        started_at=now - timedelta(seconds=90),
        finished_at=now - timedelta(seconds=88),
    )

    page = show(client)

    for text in (
        "Build report",
        "done",
        "waited 10 s",
        "ran 2 s",
        "rows: 12",
        "&lt;b&gt;: &lt;i&gt;",
    ):
        assert text in page


@WEB
def test_page_reads_no_more_than_its_jobs(client: Client) -> None:
    columns = {"created_by": "ada", "stats": {"rows": 1}, "errors": [{"message": "secret"}]}
    counts = []
    for _ in range(2):
        make_job(state=State.ERROR, **columns)
        with CaptureQueriesContext(connection) as queries:
            page = show(client)
        counts.append(len(queries))

    assert "secret" not in page
    assert counts[0] == counts[1]


@WEB
def test_links_lead_through_all_pages_and_back(client: Client) -> None:
    make_jobs(make_queue(), 7, created_by="ada")
    counts, address = [], "/list/?user=ada"
    while True:
        page = client.get(address).content.decode()
        counts.append(page.count("<tenantqueue-progress"))
        older = re.search(r'href="([^"]+)" rel="next"', page)
        if older is None:
            break
        address = "/list/" + older[1].replace("&amp;", "&")

    assert counts == [3, 3, 1]
    assert 'href="?user=ada">Newest' in page


@WEB
def test_empty_list_says_so(client: Client) -> None:
    assert "There are no jobs yet." in show(client)
    assert "There are no older jobs." in show(client, before=1)


@WEB
def test_odd_statistics_do_not_break_the_page(client: Client) -> None:
    make_job(created_by="ada", stats=json.loads("[1, 2]"))

    assert "waiting" in show(client)
