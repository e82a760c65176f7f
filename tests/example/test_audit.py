"""The audit of a batch finds what is wrong with it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from example_project.flights.audit import (
    Findings,
    JobRow,
    Note,
    Run,
    audit,
    most_at_once,
    percentile,
)

START = datetime(2013, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Batch:
    """Three reports of UA, run one after another, as they should be."""

    def __init__(self) -> None:
        self.notes = [Note(n, "UA", "reports", "success", 1) for n in (1, 2, 3)]
        self.runs = [
            Run(n, "UA", "reports", at(10 * n + 1), at(10 * n + 9), succeeded=True)
            for n in (1, 2, 3)
        ]
        self.jobs = [
            JobRow(n, "UA", "reports", "success", at(10 * n), at(10 * n + 10), 1.0)
            for n in (1, 2, 3)
        ]
        self.slots = {("UA", "reports"): 1}

    def audit(self, requested: int = 3) -> Findings:
        return audit(
            requested=requested, notes=self.notes, runs=self.runs, jobs=self.jobs, slots=self.slots
        )


def test_nothing_is_wrong_when_all_went_well() -> None:
    findings = Batch().audit()

    assert findings.problems == []
    (line,) = findings.tenants
    assert (line.jobs, line.succeeded, line.failed, line.retried) == (3, 3, 0, 0)
    assert line.queues["reports"].most == 1


def test_job_is_found_lost_when_its_row_is_missing() -> None:
    batch = Batch()
    del batch.jobs[1]

    assert batch.audit().problems == ["job 2 of UA/reports is lost: it is not in the job table"]


def test_job_is_found_lost_when_the_seeder_counted_more() -> None:
    assert batch_problem(Batch(), requested=4) == (
        "the seeder requested 4 reports but got 3 job ids"
    )


def batch_problem(batch: Batch, requested: int = 3) -> str:
    (problem,) = batch.audit(requested).problems
    return problem


def test_job_is_found_unfinished_when_it_still_waits() -> None:
    batch = Batch()
    del batch.runs[2]
    batch.jobs[2] = replace(batch.jobs[2], state="ready", queued_at=None, finished_at=None)

    assert batch.audit().problems == [
        "job 3 of UA/reports was not finished: it is ready",
        "job 3 of UA/reports ran 0 times by its own records, not 1",
    ]


def test_success_is_doubted_when_no_run_recorded_it() -> None:
    batch = Batch()
    del batch.runs[0]

    assert batch.audit().problems == [
        "job 1 of UA/reports ran 0 times by its own records, not 1",
        "job 1 of UA/reports is success, but 0 of its runs succeeded",
    ]


def test_second_run_is_found_when_a_job_ran_twice() -> None:
    batch = Batch()
    batch.runs.append(replace(batch.runs[0], started_at=at(50), finished_at=at(51)))

    assert batch.audit().problems == [
        "job 1 of UA/reports ran 2 times by its own records, not 1",
        "job 1 of UA/reports is success, but 2 of its runs succeeded",
    ]


@pytest.mark.parametrize(
    ("rows", "number", "changes", "problem"),
    [
        ("notes", 0, {"state": "error"}, "job 1 of UA/reports ended as success, not as error"),
        ("runs", 2, {"finished_at": None}, "job 3 of UA/reports has a run that never ended"),
        (
            "runs",
            1,
            {"started_at": at(18)},
            "UA/reports has 1 slots, but 2 reports ran at once by the reports' own records",
        ),
        (
            "jobs",
            1,
            {"queued_at": at(19.999)},
            "UA/reports has 1 slots, but 2 reports ran at once by the job table",
        ),
    ],
)
def test_changed_row_is_found(
    rows: str, number: int, changes: dict[str, object], problem: str
) -> None:
    batch = Batch()
    changed = getattr(batch, rows)
    changed[number] = replace(changed[number], **changes)

    assert batch_problem(batch) == problem


def test_strange_tenant_is_found_when_a_report_ran_for_it() -> None:
    batch = Batch()
    batch.runs[2] = replace(batch.runs[2], airline="DL")
    batch.slots["DL", "reports"] = 1

    assert batch_problem(batch) == "job 3 of UA/reports ran in DL/reports"


def test_row_is_found_twice_when_two_leaves_hold_it() -> None:
    batch = Batch()
    batch.jobs.append(replace(batch.jobs[0], queued_at=None))

    assert "job 1 is in the job table 2 times" in batch.audit().problems


@pytest.mark.parametrize(
    ("intervals", "most"),
    [
        ([], 0),
        ([(0, 1)], 1),
        ([(0, 1), (1, 2)], 1),  # the end is not part of the interval
        ([(0, 2), (1, 3), (2, 4)], 2),
        ([(0, 9), (1, 2), (1, 2), (3, 4)], 3),
    ],
)
def test_most_at_once_counts_overlaps(intervals: list[tuple[int, int]], most: int) -> None:
    assert most_at_once((at(start), at(end)) for start, end in intervals) == most


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, None), ([7], 0.95, 7), ([3, 1, 2], 0.5, 2), (list(range(1, 101)), 0.95, 95)],
)
def test_percentile_is_a_value_that_occurred(
    values: list[float], share: float, expected: float | None
) -> None:
    assert percentile(values, share) == expected
