"""No column of a job is forgotten where its row is written anew."""

from __future__ import annotations

import re

from django_tenantqueue.models import Job
from django_tenantqueue.queries.base import statement

OF_AN_ATTEMPT = {
    *("queued_at", "started_at", "finished_at", "expires_at", "cancel_requested_at"),
    *("worker_id", "attempt", "crashes", "final", "result", "result_ref"),
    *("progress_done", "progress_total", "progress_message"),
}
"""What a retry begins anew with."""


def columns_written(name: str, table: str) -> set[str]:
    text = re.sub(r"--.*", "", statement(name).decode())
    found = re.search(rf"INSERT INTO {table} \(([^)]*)\)", text)
    assert found is not None
    names = [column.strip() for column in found[1].split(",")]
    assert len(names) == len(set(names))
    return set(names)


def columns_of_jobs() -> set[str]:
    # a slot of a task is never kept
    return {str(field.column) for field in Job._meta.concrete_fields} - {"task_at"}


def test_end_of_a_job_keeps_all_its_columns():
    assert columns_written("finish_jobs", "tenantqueue_job_history") == columns_of_jobs()


def test_retry_keeps_all_columns_but_those_of_an_attempt():
    kept = columns_written("retry_jobs", "tenantqueue_job_hot")
    assert kept == columns_of_jobs() - OF_AN_ATTEMPT
