"""A claim beside a session with a long line, against one without."""

from __future__ import annotations

from collections.abc import Iterator

from django_tenantqueue.models import Job

from ..bench import Bench
from ..bench_app import tasks
from ..fill import add_waiting
from ..results import Incorrect, Row, Sample, at_most
from .backlog import CLAIM_WITHIN, claim_sample, sample_ratios


def run(bench: Bench) -> Iterator[Row]:
    """Measure both in turns: the claim takes jobs without a session. As many of them wait."""
    bench.use("main")
    jobs = bench.size(10_000, 2_000)
    pairs = bench.rounds(lambda: (_claim(bench, jobs, 0), _claim(bench, jobs, jobs)))
    without, beside = ([pair[side] for pair in pairs] for side in (0, 1))
    what = f"claim of 10, {jobs:,} waiting"
    yield Row("sessions", what, "ms", without, higher_is_better=False, digits=2)
    yield Row(
        "sessions",
        f"{what}, {jobs:,} more in one session",
        "ms",
        beside,
        higher_is_better=False,
        digits=2,
    )
    yield Row(
        "sessions",
        "claim, the latter against the former",
        "×",
        sample_ratios(beside, without),
        higher_is_better=False,
        target=at_most(CLAIM_WITHIN),
        digits=2,
    )


def _claim(bench: Bench, waiting: int, in_session: int) -> Sample:
    bench.reset()
    queue = bench.make_queues(["wide"], paused=False)[0]
    if in_session:
        tasks.noop_async.using(tenant="wide", session="long").enqueue_many([()] * in_session)
    add_waiting(bench.db, [queue.pk], waiting)
    held = Job.objects.filter(held_by="session").count()
    if held != max(0, in_session - 1):
        raise Incorrect(f"{held} of the {in_session} jobs of a session stand in its line")
    bench.vacuum()
    return claim_sample(bench)
