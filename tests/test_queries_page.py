"""Each query of docs/howto/useful-queries.md runs, and returns the columns that its text names."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from django_tenantqueue.models import Session
from django_tenantqueue.worker.connection import connect
from tests.factories import make_figure, make_job, make_jobs, make_queue, make_worker
from tests.process.workers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = Path(__file__).parents[1] / "docs/howto/useful-queries.md"
NO_COLUMNS = {"FIGURES", "DEFAULT_USER_SLOTS", "psql", "tenantqueue_job_hot"}
FOUND = re.findall(r"^## ([^\n]+)\n+(.*?)^```sql\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
QUERIES = {title: (text, query) for title, text, query in FOUND}


def rows_of(title: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(QUERIES[title][1])
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_every_query_is_found():
    assert len(FOUND) == len(QUERIES) == PAGE.read_text().count("```sql") == len(CASES) + 1


@pytest.mark.parametrize("title", sorted(QUERIES))
def test_columns_that_the_text_names_are_returned(title: str):
    text, query = QUERIES[title]
    with connection.cursor() as cursor:
        cursor.execute(query)
        returned = {column.name for column in cursor.description}

    assert set(re.findall(r"(?<!\[)`(\w+)`", text)) - NO_COLUMNS <= returned


def by_queue() -> dict[str, Any]:
    queue = make_queue("acme", "mail", num_slots=3)
    make_jobs(queue, 4)
    make_jobs(queue, 2, state="running")
    make_job(queue, state="queued")
    make_job(queue, state="scheduled")
    make_jobs(queue, 5, state="held")
    counts = {"ready": 4, "taken": 3, "scheduled": 1, "held": 5}
    return {"tenant": "acme", "queue": "mail", "num_slots": 3, "paused": False, **counts}


def waits() -> dict[str, Any]:
    now, queue = timezone.now(), make_queue("acme", "mail")
    for seconds in range(1, 22):
        began = now - timedelta(seconds=seconds)
        make_job(queue, state="success", created_at=began, run_at=began, started_at=now)
    long_ago = now - timedelta(days=1)
    make_job(queue, state="success", started_at=long_ago, finished_at=long_ago)
    return {"tenant": "acme", "queue": "mail", "jobs": 21, "p50": 11.0, "p95": 20.0}


def errors() -> dict[str, Any]:
    queue = make_queue("acme")
    make_jobs(queue, 3, state="error", errors=[{"class": "KeyError"}, {"class": "app.Broken"}])
    make_job(queue, state="success")
    return {"task": "tests.testapp.tasks.noop", "error": "app.Broken", "jobs": 3}


def running() -> dict[str, Any]:
    worker = make_worker(name="web-1.0")
    job = make_job(state="running", worker_id=worker.pk)
    make_job(state="ready")
    return {"worker": "web-1.0", "id": job.pk, "state": "running", "attempt": 1}


def oldest() -> dict[str, Any]:
    queue, hour = make_queue("acme", "mail"), timezone.now() - timedelta(hours=1)
    make_job(queue)
    job = make_job(queue, created_at=hour, run_at=hour)
    return {"tenant": "acme", "queue": "mail", "id": job.pk}


def throughput() -> dict[str, Any]:
    make_figure(task="", started=9, succeeded=6, failed=2, retried=1, run_seconds=18.0)
    make_figure(started=9, succeeded=9)
    counts = {"started": 9, "succeeded": 6, "failed": 2, "retried": 1}
    return {**counts, "mean_run": 2.0}


def sizes() -> dict[str, Any]:
    return {"partition": "tenantqueue_job_history_default"}


def chain() -> dict[str, Any]:
    first = make_job(state="success")
    make_job(id=1753, previous_id=first.pk)
    return {"step": -1, "id": first.pk, "state": "success"}


def users() -> dict[str, Any]:
    queue = make_queue("acme")
    Session.objects.create(
        kind="limit_user", tenant="acme", key="7", gate_key="acme/7", num_slots=2
    )
    make_jobs(queue, 2, limit_user="acme/7")
    make_jobs(queue, 3, state="held", held_by="limit_user", limit_user="acme/7", session_key=None)
    make_job(queue, limit_user="acme/8")
    return {"limit_user": "acme/7", "num_slots": 2, "through": 2, "held": 3}


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "Jobs by queue": by_queue,
    "Wait times": waits,
    "Errors by task": errors,
    "Running jobs by worker": running,
    "Oldest ready job of each tenant": oldest,
    "Throughput by hour": throughput,
    "Size of partitions": sizes,
    "The chain before a job": chain,
    "Users at their limit": users,
}


@pytest.mark.parametrize("title", CASES)
def test_query_finds_the_row(title: str):
    expected = CASES[title]()

    found = [{name: row[name] for name in expected} for row in rows_of(title)]

    assert expected in found
    if title not in ("Size of partitions", "The chain before a job"):
        assert len(found) == 1


@pytest.fixture
def blocked() -> Iterator[tuple[int, int]]:
    """Yield the server's processes of a session that waits, and of the one that it waits for."""
    lock = "LOCK TABLE tenantqueue_duty IN EXCLUSIVE MODE"
    with connect("default", "holder") as holder, connect("default", "waiter") as waiter:
        waiter.execute("SET lock_timeout = '20s'")
        holder.execute("BEGIN")
        holder.execute(lock)

        def wait() -> None:
            with waiter.transaction():
                waiter.execute(lock)

        thread = threading.Thread(target=wait)
        thread.start()
        try:
            yield waiter.info.backend_pid, holder.info.backend_pid
        finally:
            holder.execute("ROLLBACK")
            thread.join()


def test_query_of_locks_finds_who_waits_for_whom(blocked: tuple[int, int]):
    pid, holder = blocked
    wait_until(lambda: rows_of("Locks"))

    (row,) = rows_of("Locks")

    assert (row["pid"], row["blocked_by"]) == (pid, [holder])
    assert row["application_name"] == "waiter"
