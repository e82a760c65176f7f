"""Pages of jobs: complete, in order, whatever the filters and however small the windows."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_tenantqueue.models import Job
from django_tenantqueue.queries.lists import JobFilter
from django_tenantqueue.states import ACTIVE, FINAL, UNFINISHED, State
from django_tenantqueue.status import job_pages
from django_tenantqueue.status.job_filters import Asked
from django_tenantqueue.status.job_pages import find_jobs
from tests.factories import make_job, make_jobs, make_queue

pytestmark = pytest.mark.django_db
STATES = [
    None,
    UNFINISHED,
    FINAL,
    ACTIVE,
    *(frozenset({state}) for state in State),
]


def walk(asked: JobFilter, size: int) -> list[int]:
    """Return the ids of all pages, following the links to older jobs."""
    ids: list[int] = []
    before = asked.before
    for _ in range(1000):
        page = find_jobs("default", replace(asked, before=before), size=size)
        assert len(page.ids) <= size
        assert not page.capped
        ids += page.ids
        if page.older is None:
            return ids
        assert page.older < before
        before = page.older
    raise AssertionError("the pages do not come to an end")


@pytest.mark.heavy
@pytest.mark.parametrize(("window", "ready_window", "apart"), [(4000, 500, 50), (7, 3, 2)])
def test_pages_show_every_job_once_in_order(
    monkeypatch: pytest.MonkeyPatch, window: int, ready_window: int, apart: int
) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", window)
    monkeypatch.setattr(job_pages, "READY_WINDOW", ready_window)
    monkeypatch.setattr(job_pages, "QUEUES_APART", apart)
    rng = random.Random(7)
    queues = [make_queue().pk for _ in range(4)]
    for _ in range(160):
        make_job(
            rng.choice(queues),
            state=rng.choice(list(State)),
            priority=rng.choice([120, 240, 240, 360]),
            lane=rng.choice([0, 240]),
            task=rng.choice(["app.a", "app.a", "app.b"]),
        )
    rows = list(Job.objects.order_by("-pk").values_list("pk", "state", "queue_id", "task"))

    for states in STATES:
        for wanted in (None, (queues[0],), (queues[1], queues[3]), tuple(queues)):
            for name in (None, "app.a", "app.none"):
                expected = [
                    pk
                    for pk, state, queue, task in rows
                    if (states is None or state in states)
                    and (wanted is None or queue in wanted)
                    and (name is None or task == name)
                ]
                asked = JobFilter(states, wanted, name)
                assert walk(asked, 15) == expected, asked


@pytest.mark.parametrize("window", [4000, 7])
def test_pages_of_a_text_and_of_an_object_show_every_job_once_in_order(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", window)
    rng = random.Random(7)
    queues = [make_queue().pk for _ in range(2)]
    for _ in range(60):
        make_job(
            rng.choice(queues),
            state=rng.choice(list(State)),
            task=rng.choice(["app.first", "app.second"]),
            source_type="shop.order",
            source_id=rng.choice("12"),
        )
    rows = list(
        Job.objects.order_by("-pk").values_list("pk", "state", "queue_id", "task", "source_id")
    )

    for states in STATES:
        for wanted in (None, (queues[0],)):
            chosen = [
                row
                for row in rows
                if (states is None or row[1] in states) and (wanted is None or row[2] in wanted)
            ]
            of_text = JobFilter(states, wanted, text="FIRST")
            assert walk(of_text, 5) == [row[0] for row in chosen if row[3] == "app.first"]
            of_object = JobFilter(states, wanted, source=(("shop.order",), "2"))
            assert walk(of_object, 5) == [row[0] for row in chosen if row[4] == "2"]
            steps = Asked(of_text).walk("default", size=5)
            assert [pk for step in steps for pk in step.ids] == walk(of_text, 5)


def test_no_queue_means_no_job() -> None:
    make_job()

    assert find_jobs("default", JobFilter(queues=()), size=5).ids == ()


def test_page_says_when_more_hold_a_slot_than_it_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_pages, "SMALL_WINDOW", 3)
    queue = make_queue()
    make_jobs(queue, 4, state=State.RUNNING)

    assert find_jobs("default", JobFilter(ACTIVE), size=5).capped
    assert find_jobs("default", JobFilter(queues=(queue.pk,)), size=5).capped


def test_planner_settings_are_as_before_afterwards() -> None:
    find_jobs("default", JobFilter(), size=5)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting(n) FROM unnest(ARRAY['enable_sort', 'enable_seqscan', "
            "'enable_bitmapscan', 'jit']) n"
        )
        after = [row[0] for row in cursor.fetchall()]
        cursor.execute("SET LOCAL jit TO DEFAULT")
        cursor.execute("SHOW jit")
        assert after == ["on", "on", "on", *cursor.fetchone()]


def test_no_month_is_planned_for_unfinished_jobs() -> None:
    with CaptureQueriesContext(connection) as captured:
        find_jobs("default", JobFilter(UNFINISHED, (make_queue().pk,)), size=5)
    statements = [entry["sql"] for entry in captured if entry["sql"].startswith("--")]

    assert len(statements) == 3
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(f"EXPLAIN {statement}")
            assert "tenantqueue_job_history" not in str(cursor.fetchall())


def test_queue_ids_are_found_by_tenant_name_or_both(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = make_queue("acme"), make_queue("acme", "reports")
    third = make_queue("zeta", "reports")

    assert set(job_pages.queue_ids("default", tenant="acme", name=None)) == {first.pk, second.pk}
    assert set(job_pages.queue_ids("default", tenant=None, name="reports")) == {second.pk, third.pk}
    assert job_pages.queue_ids("default", tenant="zeta", name="reports") == (third.pk,)
    assert job_pages.queue_ids("default", tenant="none", name=None) == ()
    monkeypatch.setattr(job_pages, "QUEUES_MOST", 1)
    assert len(job_pages.queue_ids("default", tenant="acme", name=None)) == 1


def test_walk_finds_all_when_a_page_may_leave_some_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_pages, "SMALL_WINDOW", 5)
    queue = make_queue()
    ids = make_jobs(queue, 20, state=State.SCHEDULED)[::-1]
    make_jobs(queue, 20, state=State.HELD)
    asked = JobFilter(frozenset({State.SCHEDULED}))
    assert find_jobs("default", asked, size=7).capped

    steps = [page.ids for page in Asked(asked).walk("default", size=7)]

    assert [i for step in steps for i in step] == ids
    assert max(map(len, steps)) == 7


def test_walk_looks_further_when_a_page_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", 5)
    queue = make_queue()
    rare = make_jobs(queue, 1, task="app.rare")
    make_jobs(queue, 30)

    pages = Asked(JobFilter(task="app.rare")).walk("default", size=7)
    assert [page.ids for page in pages if page.ids] == [tuple(rare)]
