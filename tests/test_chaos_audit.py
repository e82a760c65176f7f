"""The audit after a chaos run finds what is wrong, and nothing where all is well."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.chaos import audit, slots
from tests.chaos.evidence import WORKER_DIED, Evidence, JobRow, Life, Run
from tests.chaos.finding import Finding
from tests.chaos.plan import FULL, SHORT, plan_slots, plan_waves
from tests.chaos.report import figure_lines, finding_lines, restarts, trouble_lines
from tests.intervals import Limits

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
QUEUE = 7


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def make_run(job: int = 1, claim_seq: int = 1, **columns: object) -> Run:
    """Make a run from 1 s to 2 s, claimed at 0.5 s."""
    return replace(Run(job, claim_seq, "living", at(0.5), at(1), at(2)), **columns)


def make_row(job: int = 1, **columns: object) -> JobRow:
    """Make a job that succeeded at once, claimed at 0.5 s and finished at 2.5 s."""
    return replace(JobRow(job, "plain", QUEUE, "success", 1, 1000, 1, at(0.5), at(2.5)), **columns)


def make_evidence(*rows: JobRow, runs: list[Run], **others: object) -> Evidence:
    """Make the evidence of a run with one process that lives and one that died at 3 s."""
    evidence = Evidence(
        enqueued={row.id: row.kind for row in rows},
        rows=rows,
        runs=runs,
        lives={
            "supervisor": Life(at(100), None),
            "living": Life(at(100), None, "supervisor"),
            "killed": Life(at(3), at(3.02), "supervisor"),
        },
        effects={},
        limits={QUEUE: Limits(1)},
        exit_codes=[0, 0],
    )
    return replace(evidence, **others)


def rescued() -> Evidence:
    """Make the evidence of a job that was cut off at 3 s and succeeded in its second run."""
    row = make_row(
        attempt=2, claim_seq=2, queued_at=at(4), finished_at=at(6), errors=(WORKER_DIED,)
    )
    runs = [
        make_run(process="killed", ended_at=None),
        make_run(claim_seq=2, claimed_at=at(4), began_at=at(4.1), ended_at=at(5)),
    ]
    return make_evidence(row, runs=runs)


def poison(**columns: object) -> Evidence:
    row = make_row(
        kind="poison",
        state="error",
        attempt=3,
        max_attempts=3,
        claim_seq=3,
        queued_at=at(2.2),
        errors=(WORKER_DIED,) * 3,
    )
    runs = [
        make_run(
            claim_seq=n,
            process=f"killed {n}",
            claimed_at=at(0.7 * n),
            began_at=at(0.7 * n + 0.1),
            ended_at=None,
        )
        for n in (1, 2, 3)
    ]
    lives = {f"killed {n}": Life(at(0.7 * n + 0.2), at(0.7 * n + 0.22)) for n in (1, 2, 3)}
    return make_evidence(replace(row, **columns), runs=runs, lives=lives)


def wrong(evidence: Evidence) -> list[str]:
    return [finding.what for finding in audit.audit(evidence) if not finding.ok]


@pytest.mark.parametrize(
    "evidence",
    [make_evidence(make_row(), runs=[make_run()]), rescued(), poison()],
    ids=["undisturbed", "rescued", "poison"],
)
def test_nothing_is_wrong_when_all_went_well(evidence: Evidence):
    assert wrong(evidence) == []


def test_examples_name_what_was_found():
    lost = make_evidence(make_row(), runs=[make_run()], enqueued={1: "plain", 2: "plain"})
    strange = make_evidence(make_row(), runs=[make_run(process="strange", ended_at=None)])

    assert audit.lost(lost).examples == ("job 2",)
    assert audit.unwatched(strange).examples == ("strange",)
    assert audit.unended(strange).found == 1


NO_POISON = make_row(state="error", errors=("builtins.ValueError",))
DIED_ONCE = make_row(attempt=2, claim_seq=2, errors=(WORKER_DIED,))
CUT = make_run(process="killed", ended_at=None)


@pytest.mark.parametrize(
    ("judge", "rows", "runs", "found"),
    [
        pytest.param(audit.doubled, [make_row(), make_row(state="running")], [], 1, id="two rows"),
        pytest.param(audit.unfinished, [make_row(), make_row(state="running")], [], 1, id="open"),
        pytest.param(audit.failed, [NO_POISON], [make_run()], 1, id="error is no poison"),
        pytest.param(audit.unexplained, [NO_POISON], [make_run()], 1, id="error unexplained"),
        pytest.param(
            audit.overlapping,
            [make_row()],
            [make_run(), make_run(claim_seq=2, began_at=at(1.9), ended_at=at(4))],
            1,
            id="begins before the other ends",
        ),
        pytest.param(
            audit.overlapping,
            [make_row()],
            [
                make_run(ended_at=at(9)),
                make_run(claim_seq=2, began_at=at(2), ended_at=at(3)),
                make_run(claim_seq=3, began_at=at(4), ended_at=at(5)),
            ],
            2,
            id="long run covers two",
        ),
        pytest.param(
            audit.overlapping,
            [make_row()],
            [CUT, make_run(claim_seq=2, began_at=at(2.99), ended_at=at(5))],
            1,
            id="before the cut process was seen alive last",
        ),
        pytest.param(
            audit.overlapping,
            [make_row()],
            [CUT, make_run(claim_seq=2, began_at=at(3.01), ended_at=at(5))],
            0,
            id="after the cut process was seen alive last",
        ),
        pytest.param(  # its run was silent from 1 s to 8 s, and then wrote its end
            audit.overlapping,
            [make_row()],
            [make_run(ended_at=at(8)), make_run(claim_seq=2, began_at=at(6), ended_at=at(7))],
            1,
            id="stopped process keeps its job",
        ),
        pytest.param(
            audit.repeated,
            [make_row()],
            [make_run(), make_run(began_at=at(2), ended_at=at(3))],
            1,
            id="claim begun twice",
        ),
        pytest.param(
            audit.late, [make_row()], [make_run(claimed_at=None)], 1, id="lost before it began"
        ),
        pytest.param(
            audit.late, [make_row()], [replace(CUT, claimed_at=None)], 0, id="of a dying process"
        ),
        pytest.param(
            audit.unended, [make_row()], [make_run(ended_at=None)], 1, id="no end, process lives"
        ),
        pytest.param(audit.unrun, [make_row()], [make_run(ended_at=None)], 1, id="no end, success"),
        pytest.param(audit.unrun, [make_row(claim_seq=2)], [make_run()], 1, id="another's success"),
        pytest.param(
            audit.miscounted, [make_row(attempt=2)], [make_run()], 1, id="attempt without error"
        ),
        pytest.param(
            audit.overrun,
            [make_row(claim_seq=2, attempt=1)],
            [make_run(), make_run(claim_seq=2, began_at=at(2), ended_at=at(3))],
            1,
            id="run not counted",
        ),
        pytest.param(
            audit.overrun,
            [make_row(claim_seq=2, attempt=1)],
            [CUT, make_run(claim_seq=2, began_at=at(4))],
            0,
            id="uncounted, its process died of another",
        ),
        pytest.param(
            audit.overcharged,
            [DIED_ONCE],
            [replace(CUT, began_at=at(-60), ended_at=at(-59)), make_run(claim_seq=2)],
            1,
            id="no process of the job died",
        ),
        pytest.param(
            audit.overcharged, [DIED_ONCE], [make_run(claim_seq=2)], 0, id="claim not seen to begin"
        ),
        *(
            pytest.param(
                audit.unexplained,
                [make_row(kind=kind, attempt=2, errors=("django.db.utils.OperationalError",))],
                [],
                found,
                id=f"connection lost, {kind}",
            )
            for kind, found in (("atomic", 0), ("plain", 1))
        ),
    ],
)
def test_rows_and_runs_are_judged(judge, rows: list[JobRow], runs: list[Run], found: int):
    assert judge(make_evidence(*rows, runs=runs)).found == found


def test_a_job_is_uninvited_when_its_enqueue_was_rolled_back():
    evidence = make_evidence(make_row(), runs=[make_run()], enqueued={})

    assert audit.uninvited(evidence).found == 1


@pytest.mark.parametrize(
    ("kind", "effects", "found"),
    [("atomic", 1, 0), ("atomic", 0, 1), ("atomic", 2, 1), ("plain", 0, 0), ("plain", 1, 1)],
)
def test_rows_of_an_atomic_job_are_counted(kind: str, effects: int, found: int):
    evidence = make_evidence(make_row(kind=kind), runs=[make_run()], effects={1: effects})

    assert audit.miswritten(evidence).found == found


@pytest.mark.parametrize(
    "columns",
    [
        {"state": "success"},
        {"attempt": 2, "errors": (WORKER_DIED,) * 2},
        {"errors": (WORKER_DIED, WORKER_DIED)},
        {"errors": (WORKER_DIED, WORKER_DIED, "builtins.ValueError")},
    ],
)
def test_poison_is_wrong_when_it_ended_otherwise(columns: dict[str, object]):
    assert not audit.poisoned(poison(**columns)).ok


def test_poison_is_wrong_when_it_is_lost():
    assert not audit.poisoned(replace(poison(), rows=[])).ok


def test_a_claim_is_over_the_slots_when_another_job_has_them():
    rows = [make_row(1), make_row(2, queued_at=at(2), finished_at=at(3))]

    assert slots.over_slots(make_evidence(*rows, runs=[])).found == 1


def test_a_claim_is_not_over_the_slots_when_they_were_lowered_later():
    rows = [
        make_row(1, queued_at=at(1), finished_at=at(9)),
        make_row(2, queued_at=at(2), finished_at=at(9)),
        make_row(3, queued_at=at(8), finished_at=at(9)),
    ]
    limits = Limits(2)
    limits.change(1, before=at(3), after=at(4))

    found = slots.over_slots(make_evidence(*rows, runs=[], limits={QUEUE: limits}))

    assert found.found == 1
    assert found.examples[0].endswith("00:00:08.000: 3 with 1 slots")


def test_a_claim_is_over_the_slots_when_a_run_that_was_cut_had_them():
    rows = [
        make_row(1, claim_seq=2, queued_at=at(5), finished_at=at(6)),
        make_row(2, queued_at=at(2.9), finished_at=at(4)),
    ]
    runs = [
        make_run(1, process="killed", ended_at=None),
        make_run(2, claimed_at=at(2.9), began_at=at(3), ended_at=at(3.5)),
    ]
    evidence = make_evidence(*rows, runs=runs)

    assert slots.over_slots(evidence).found == 0
    assert slots.over_slots_by_runs(evidence).found == 1


def test_a_claim_holds_its_slot_until_the_finish_when_it_was_the_last():
    rows = [make_row(1, finished_at=at(4)), make_row(2, queued_at=at(3), finished_at=at(5))]
    runs = [make_run(1), make_run(2, claimed_at=at(3), began_at=at(3), ended_at=at(3.5))]

    assert slots.over_slots_by_runs(make_evidence(*rows, runs=runs)).found == 1


def test_the_fleet_is_judged_too():
    evidence = make_evidence(
        make_row(), runs=[make_run()], workers_left=2, exit_codes=[0, -9], failures=["it broke"]
    )

    assert wrong(evidence) == [
        "workers left on the list",
        "supervisors that did not end cleanly",
        "failures of this program",
    ]


def test_restarts_are_told_apart_by_the_death_of_the_supervisor():
    evidence = rescued()
    lives = {**evidence.lives, "supervisor": Life(at(4), at(4.01))}
    later = {**evidence.lives, "supervisor": Life(at(9), at(9.01))}

    assert [again.seconds for again in restarts(evidence, orphans=False)] == [pytest.approx(1.1)]
    assert restarts(evidence, orphans=True) == []
    assert len(restarts(replace(evidence, lives=lives), orphans=True)) == 1
    assert len(restarts(replace(evidence, lives=later), orphans=False)) == 1


def test_report_shows_each_verdict():
    findings = [Finding("jobs lost", 0, "0", True), Finding("jobs", 1, "0", False, ("job 3",))]

    assert list(finding_lines(findings)) == [
        "Audit",
        "  jobs lost        0  (expected 0)  OK",
        "  jobs             1  (expected 0)  WRONG",
        "      job 3",
    ]


def test_report_counts_rescued_jobs():
    lines = list(figure_lines(rescued()))

    assert "        1  attempts counted for a death: jobs that were rescued" in lines
    assert "        0  claims given back, no attempt counted" in lines
    assert "     1.10  s: worst (job 1, cut off at 00:00:03.000)" in lines
    assert "        3  kill -9 of a child, a supervisor or a group" in list(
        trouble_lines({"kill": 3}, 4)
    )


def test_plan_is_the_same_when_the_seed_is():
    assert plan_waves(SHORT, 5) == plan_waves(SHORT, 5)
    assert plan_waves(SHORT, 5) != plan_waves(SHORT, 6)
    assert plan_slots(SHORT, 5) != plan_slots(SHORT, 6)


@pytest.mark.parametrize("scale", [SHORT, FULL])
def test_plan_holds_all_jobs(scale):
    waves = plan_waves(scale, 1)
    jobs = [job for wave in waves for portion in wave for job in portion.jobs]

    assert len(waves) == scale.waves
    assert len(jobs) == scale.jobs
    assert sum(job.kind == "poison" for job in jobs) == scale.poison
    assert set(plan_slots(scale, 1).values()) == set(range(1, scale.most_slots + 1))
