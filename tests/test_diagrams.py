"""The diagrams of the documentation show what PostgreSQL does."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from django.db import connection

from django_tenantqueue.operations import maintain
from django_tenantqueue.queries import finish
from django_tenantqueue.queries.round_trip import exchange
from django_tenantqueue.states import Priority, State
from tests.factories import FakeWorker, make_jobs, make_queue, success
from tests.test_docs import DOCS, from_code

NEEDS = "alerts api celery fireworq http prometheus retention routing schedules shards"
claim_diagrams = importlib.import_module("claim_diagrams")
job_life = importlib.import_module("job_life_diagram")


@pytest.fixture
def worker(transactional_db: None) -> Iterator[FakeWorker]:
    made = FakeWorker()
    yield made
    made.close()


@pytest.mark.parametrize("name", from_code.DIAGRAMS)
def test_diagram_has_a_title_and_a_description(name):
    root = ElementTree.parse(DOCS / "images" / name).getroot()

    first = [root[0].tag.rpartition("}")[2], root[1].tag.rpartition("}")[2]]
    assert first == ["title", "desc"]
    assert root.get("role") == "img"


def test_next_jobs_of_the_diagram_are_those_of_a_claim(worker):
    expected: list[tuple[str, int]] = []
    drawn: dict[int, tuple[str, int]] = {}
    for name, queues in claim_diagrams.LANES:
        expected += claim_diagrams.served(queues, claim_diagrams.ROOM - len(expected))
        for queue in queues:
            free, slots = int(queue.slots.split()[0]), int(queue.slots.split()[2])
            assert free == queue.free
            row = make_queue(*queue.name.split(" / "), num_slots=slots)
            if slots > free:
                make_jobs(row, slots - free, state=State.RUNNING)
            ids = make_jobs(row, len(queue.jobs), priority=getattr(Priority, name))
            drawn |= {
                pk: (queue.name, job) for pk, job in zip(sorted(ids), queue.jobs, strict=True)
            }

    claimed = worker.claim(claim_diagrams.ROOM)

    assert [drawn[job.id] for job in claimed] == expected


@pytest.mark.parametrize(("room", "names", "count"), [(10, "ABC", 1), (7, "ABC", 3), (10, "AC", 1)])
def test_turns_of_the_diagram_are_those_of_claims(worker, room, names, count):
    queues = {
        make_queue(num_slots=1000, weight=claim_diagrams.WEIGHTS[name]).pk: name for name in names
    }
    for pk in queues:
        make_jobs(pk, 30)

    taken = ["".join(queues[job.queue_id] for job in worker.claim(room)) for _ in range(count)]

    assert taken == list(claim_diagrams.claims(room, names, count))


def test_columns_of_the_diagram_change_as_those_of_a_job(worker):
    [job_id] = make_jobs(make_queue(num_slots=1), 1)
    before: dict[str, object] = dict.fromkeys(job_life.COLUMNS)
    held: list = []
    for number, step in enumerate(job_life.STEPS):
        if step.text.startswith("claimed"):
            held = worker.claim()
        elif step.text.startswith("still running"):
            runs = [finish.RunRecord(held[0].id, held[0].claim_seq, 0.2, None)]
            assert finish.record_runs(worker.db, worker.id, runs)
        elif step.text.startswith("fails"):
            assert worker.fail(held, delay=0.05)
        elif step.text.startswith("its time has come"):
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(0.05)")
            assert maintain.promote("default") == 1
        elif step.text.startswith("returns"):
            # a start that is stored stays
            ends = [success(job)._replace(age_seconds=None) for job in held]
            assert exchange(worker.db, worker.id, finished=ends).finished == {job_id}
        after = columns_of(job_id)
        assert after["state"] == step.wrote.get("state", before["state"])
        if number:
            changed = {name for name in after if after[name] != before[name]}
            # the same worker claims twice here
            assert changed | {"worker_id"} == set(step.wrote) | {"worker_id"}, step.text
        for name, value in step.wrote.items():
            assert (after[name] is None) == (value == job_life.NULL), (step.text, name)
            if name == "attempt":
                assert after[name] == int(value)
        before = after


def columns_of(job_id: int) -> dict[str, object]:
    with connection.cursor() as cursor:
        names = ", ".join(job_life.COLUMNS)
        cursor.execute(f"SELECT {names} FROM tenantqueue_job WHERE id = %s", [job_id])
        return dict(zip(job_life.COLUMNS, cursor.fetchone(), strict=True))
