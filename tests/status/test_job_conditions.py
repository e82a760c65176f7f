"""Jobs found by times, labels and other columns: complete, in order, however small the windows."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations_with_replacement
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.utils import timezone

from django_tenantqueue.exceptions import InvalidArgument
from django_tenantqueue.queries.lists import JobFilter, find_first_created
from django_tenantqueue.states import FINAL, UNFINISHED, State
from django_tenantqueue.status import job_pages
from django_tenantqueue.status.job_conditions import read_moment
from django_tenantqueue.status.job_filters import read_filters
from django_tenantqueue.status.job_pages import find_jobs
from tests.factories import make_job, make_queue
from tests.sample_tasks import bills

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def found(**filters: str) -> list[int]:
    """Return the ids of all jobs that the filters select."""
    asked = read_filters("default", filters)
    assert asked.problem is None
    return [pk for page in asked.walk("default", size=5) for pk in page.ids]


def problem(**filters: str) -> str:
    return read_filters("default", filters).problem or ""


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


@pytest.fixture
def jobs() -> list[dict[str, Any]]:
    """Make jobs of all kinds, one an hour, and return what filters compare."""
    rng = random.Random(7)
    queues = [make_queue("acme"), make_queue("zeta")]
    made = []
    for hour in range(60):
        state = rng.choice(list(State))
        queue = rng.choice(queues)
        columns: dict[str, Any] = {
            "state": state,
            "task": rng.choice(["app.a", "app.b"]),
            "priority": rng.choice([120, 240]),
            "created_at": at(hour),
            "labels": rng.choice([None, ["nightly"], ["nightly", "rare"]]),
            "created_by": rng.choice([None, "7", "8"]),
            "limit_user": f"{queue.tenant}/ada" if rng.random() < 0.3 else None,
            "session_key": f"{queue.tenant}/one" if rng.random() < 0.3 else None,
            "args": {"args": [], "search": [f"invoice={hour % 9}"]},
        }
        if state is State.HELD:
            columns |= {"held_by": "session", "session_key": f"{queue.tenant}/one"}
        if state in FINAL:
            columns |= {"finished_at": at(hour + rng.random() * 20)}
        if state in (State.RUNNING, State.QUEUED, *FINAL):
            columns["worker_id"] = rng.choice([5, 6])
        if state in (State.ERROR, State.CANCELLED, State.SCHEDULED) or rng.random() < 0.2:
            columns["errors"] = [{"class": rng.choice(["app.errors.Lost", "ValueError"])}]
        job = make_job(queue, **columns)
        made.append({"finished_at": None, "errors": None, "worker_id": None, **columns})
        made[-1] |= {"pk": job.pk, "tenant": queue.tenant}
    return made[::-1]


def has_failed(job: dict[str, Any], name: str) -> bool:
    last = job["errors"] and job["errors"][-1]["class"]
    return bool(last) and job["state"] is not State.SUCCESS and last.endswith(name)


CHECKS: dict[str, tuple[dict[str, str], Callable[[dict[str, Any]], Any]]] = {
    "created from": ({"created_from": at(15).isoformat()}, lambda job: job["created_at"] >= at(15)),
    "created before": (
        {"created_to": at(45).isoformat()},
        lambda it: it["created_at"] < at(45),
    ),
    "ended": (
        {"ended_from": at(30).isoformat(), "ended_to": at(50).isoformat()},
        lambda job: job["finished_at"] and at(30) <= job["finished_at"] < at(50),
    ),
    "label": ({"label": "nightly"}, lambda job: job["labels"]),
    "rare label": ({"label": "rare"}, lambda job: "rare" in (job["labels"] or ())),
    "argument": (
        {"argument": "invoice=4"},
        lambda job: job["args"]["search"] == ["invoice=4"],
    ),
    "creator": ({"created_by": "7"}, lambda job: job["created_by"] == "7"),
    "session": (
        {"session": "one", "tenant": "acme"},
        lambda job: job["session_key"] == "acme/one" and job["tenant"] == "acme",
    ),
    "user": (
        {"limit_user": "ada", "tenant": "zeta"},
        lambda job: job["limit_user"] == "zeta/ada" and job["tenant"] == "zeta",
    ),
    "worker": ({"worker": "5"}, lambda job: job["worker_id"] == 5),
    "priority": ({"priority": "120"}, lambda job: job["priority"] == 120),
    "error": ({"error": "Lost"}, lambda job: has_failed(job, "Lost")),
    "task": ({"task": "app.a"}, lambda job: job["task"] == "app.a"),
    "state": ({"state": "finished"}, lambda job: job["state"] in FINAL),
    "unfinished": ({"state": "unfinished"}, lambda job: job["state"] in UNFINISHED),
}


@pytest.mark.heavy
@pytest.mark.parametrize("window", [4000, 9])
def test_every_condition_combines_with_every_other(
    jobs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", window)
    monkeypatch.setattr(job_pages, "READY_WINDOW", window)
    for first, second in combinations_with_replacement(CHECKS, 2):
        (filters, fits), (others, fits_too) = CHECKS[first], CHECKS[second]
        if all(filters[name] == others[name] for name in filters.keys() & others.keys()):
            expected = [job["pk"] for job in jobs if fits(job) and fits_too(job)]
            assert found(**{**filters, **others}) == expected, (first, second)


def test_a_key_of_many_jobs_is_searched_for_in_the_order_of_ids(
    jobs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", 10)

    page = find_jobs("default", JobFilter(FINAL, label="nightly"), size=3)

    expected = [job["pk"] for job in jobs if job["labels"] and job["state"] in FINAL]
    assert list(page.ids) == expected[:3]
    assert not page.capped


def test_a_rare_key_is_found_on_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_pages, "WINDOW", 3)
    queue = make_queue()
    wanted = [
        make_job(queue, state=state, **columns).pk
        for state in (State.SUCCESS, State.READY)
        for columns in ({"labels": ["rare"]}, {"args": {"search": ["invoice=4711"]}})
    ]
    for state in (State.SUCCESS, State.READY):
        for _ in range(50):
            make_job(queue, state=state, labels=["usual"], args={"search": ["invoice=1"]})

    for asked in (JobFilter(label="rare"), JobFilter(argument="invoice=4711")):
        page = find_jobs("default", asked, size=5)
        assert len(page.ids) == 2
        assert set(page.ids) < set(wanted)
        assert page.older is None


def test_lowest_id_of_a_time_is_found(jobs: list[dict[str, Any]]) -> None:
    for job in jobs[::7]:
        assert find_first_created("default", job["created_at"]) == job["pk"]
    assert find_first_created("default", at(1000)) is None
    assert find_first_created("default", at(-1000)) == jobs[-1]["pk"]


def test_no_id_is_found_while_there_are_no_jobs() -> None:
    assert find_first_created("default", NOON) is None
    assert found(created_from=NOON.isoformat()) == []


def test_months_that_the_times_exclude_are_not_read() -> None:
    month = timezone.now()
    asked = read_filters("default", {"ended_from": month.isoformat(), "task": "app.a"}).filter
    with connection.execute_wrapper(_noting(statements := [])):
        find_jobs("default", asked, size=5)
    with connection.cursor() as cursor:
        for text, params in statements:
            if "tenantqueue_job_history j" in text:
                cursor.execute(f"EXPLAIN {text}", params)
                plan = str(cursor.fetchall())
                assert f"history_{month:%Ym%m}" in plan
        cursor.execute(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'tenantqueue_job_history'::regclass"
        )
        assert cursor.fetchone()[0] > 1


def _noting(statements: list[Any]) -> Any:
    def note(execute: Any, text: str, params: Any, many: bool, context: Any) -> Any:
        statements.append((text, params))
        return execute(text, params, many, context)

    return note


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-11-24", datetime(2026, 11, 23, 15, tzinfo=UTC)),
        ("2026-11-24T02:30", datetime(2026, 11, 23, 17, 30, tzinfo=UTC)),
        ("2026-11-24 02:30:05", datetime(2026, 11, 23, 17, 30, 5, tzinfo=UTC)),
        ("2026-11-24T02:30+00:00", datetime(2026, 11, 24, 2, 30, tzinfo=UTC)),
        ("2026-11-24T02:30 00:00", datetime(2026, 11, 24, 2, 30, tzinfo=UTC)),
    ],
)
def test_times_are_in_the_current_time_zone_unless_they_say_more(
    text: str, meant: datetime
) -> None:
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        assert read_moment(text) == meant


def test_times_may_be_given_from_now() -> None:
    for text, hours in (("90m", 1.5), ("24h", 24), ("7d", 168)):
        ago = timezone.now() - read_moment(text)
        assert abs(ago - timedelta(hours=hours)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    "text",
    [
        "yesterday", "2026-02-31", "2026-13-01", "0001-01-01", "9999-12-31", "99999d", "-5y", "24",
        "2026-11-24T25:00", "12:30", "9" * 5000, "1h\n",
        "0001-01-01T00:00+23:59", "9999-12-31T23:59-23:59",
    ],
)  # fmt: skip
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a time"):
        read_moment(text)
    assert "is not a time" in problem(created_from=text)


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"worker": "web-1"}, "worker: 'web-1' is not a number"),
        ({"worker": "9" * 30}, "is not a number"),
        ({"priority": "32768"}, "is not a number"),
        ({"priority": "1.5"}, "is not a number"),
        ({"priority": "--5"}, "is not a number"),
        ({"argument": "4711"}, "give one like invoice=4711"),
        ({"argument": "invoice="}, "give one like invoice=4711"),
        ({"argument": "colour=red"}, "No task declares the argument 'colour' as searchable"),
        ({"label": "\x00"}, "There is no job with"),
        ({"session": "one"}, "Add the tenant"),
        ({"created_from": "2026-11-24", "created_to": "2026-11-24"}, "must be earlier"),
    ],
)
def test_what_cannot_be_is_said(filters: dict[str, str], said: str) -> None:
    make_queue("acme"), make_queue("zeta")

    assert said in problem(**filters)


def test_a_priority_below_zero_is_a_number() -> None:
    job = make_job(priority=-5, lane=0)

    assert found(priority="-5") == [job.pk]


def test_a_session_needs_no_tenant_where_there_is_one() -> None:
    job = make_job(make_queue(""), session_key="/one")

    assert found(session="one") == [job.pk]
    asked = read_filters("default", {"session": "one"}, tenants={"acme"})
    assert asked.filter.session == "acme/one"


def test_an_error_class_is_found_with_its_module_or_without() -> None:
    job = make_job(state=State.ERROR, errors=[{"class": "app_x.errors.Lost"}])
    make_job(state=State.ERROR, errors=[{"class": "app.errors.GetLost"}])
    make_job(state=State.ERROR, errors=[{"class": "appYx.errors.Lost2"}])

    assert found(error="Lost") == found(error="app_x.errors.Lost") == [job.pk]
    assert found(error="_x.errors.Lost") == found(error="%") == []


def test_jobs_of_a_searchable_argument_are_found_by_its_value() -> None:
    ids = {
        value: bills.delay(given).pk
        for value, given in (
            *(("4711", 4711), ("A-17", "A-17"), ("true", True)),
            ("2026-11-24", NOON.date()),
        )
    }
    by_name = bills.using(tenant="acme").delay(invoice="B=1").pk
    many = bills.enqueue_many([("C",), {"invoice": "C", "region": "eu"}])

    for value, pk in ids.items():
        assert found(argument=f"invoice={value}") == [pk]
    assert found(argument=" invoice = B=1 ") == [by_name]
    assert found(argument="invoice=C") == many[::-1]
    assert found(argument="extra=eu") == [many[1]]
    assert found(argument="invoice=471") == []
