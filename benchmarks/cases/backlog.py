"""The same work with little and much that waits, and with little and much that has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..bench import Bench
from ..claiming import measure_claims
from ..fill import add_waiting, make_history
from ..measure import ratio, ratios
from ..results import Row, Sample, at_least, at_most
from ..window import Feeder, measure_window

PLAIN, DEEP = "main", "history"
"""Two databases, the second with a full history, so that both can be measured in turns."""
WITHIN = 1.2
CLAIM_WITHIN = 1.5


@dataclass(slots=True)
class Place:
    """A number of waiting jobs beside a number of ended ones."""

    database: str
    waiting: int
    ended: int
    rates: list[Sample] = field(default_factory=list)
    claims: list[Sample] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.waiting:,} waiting, {self.ended:,} ended"


def ended_rows(bench: Bench) -> int:
    """Return the size of the long history."""
    return bench.size(10_000_000, 100_000)


def use_deep(bench: Bench) -> None:
    """Work on the database with the long history, filled at its first use."""
    if bench.use(DEEP):
        make_history(bench, ended_rows(bench))


def use(bench: Bench, database: str) -> None:
    """Work on the database of a place."""
    if database == DEEP:
        use_deep(bench)
    else:
        bench.use(PLAIN)


def claim_sample(bench: Bench) -> Sample:
    """Return the time of a claim on what is there now, dead rows included."""
    pairs = bench.size(300, 60)
    bench.settle()
    times = measure_claims(bench, pairs)
    note = f"p50 {times.p50:.2f}, p95 {times.p95:.2f}"
    if times.empty:
        note += f", {times.empty} of {pairs} took nothing"
    return Sample(times.mean, note=note)


def sample_ratios(samples: list[Sample], references: list[Sample]) -> list[Sample]:
    """Return the ratio of what was measured in the same round."""
    shares = ratios([s.value for s in samples], [s.value for s in references])
    return [Sample(share) for share in shares]


def run(bench: Bench) -> Iterator[Row]:
    """Measure four places in turns, one queue, one worker; the first is what others are held to."""
    few, many = 1_000, bench.size(1_000_000, 50_000)
    places = [
        Place(database, waiting, ended)
        for database, ended in ((PLAIN, 0), (DEEP, ended_rows(bench)))
        for waiting in (few, many)
    ]
    for _ in range(bench.repeat):
        for place in places:
            _measure(bench, place)
    first = places[0]
    for place in places:
        yield Row("backlog", str(place), "jobs/s", place.rates)
    for place in places[1:]:
        yield Row(
            "backlog",
            f"rate, {place}, against the first",
            "×",
            sample_ratios(place.rates, first.rates),
            target=at_least(round(ratio(1, WITHIN), 3)),
            digits=2,
        )
    for place in places:
        yield Row(
            "backlog",
            f"claim of 10, {place}",
            "ms",
            place.claims,
            higher_is_better=False,
            digits=2,
        )
    for place in places[1:]:
        yield Row(
            "backlog",
            f"claim, {place}, against the first",
            "×",
            sample_ratios(place.claims, first.claims),
            higher_is_better=False,
            target=at_most(CLAIM_WITHIN),
            digits=2,
        )


def _measure(bench: Bench, place: Place) -> None:
    use(bench, place.database)
    # The history is kept: it grows by the jobs of this case, a few per cent of what is there.
    bench.reset(history=place.database == PLAIN)
    queue = bench.make_queues(["wide"], paused=False)[0]
    add_waiting(bench.db, [queue.pk], place.waiting)
    bench.vacuum()
    feeder = Feeder(bench, queue.pk, place.waiting)
    seconds = bench.size(8, 1)
    place.rates.append(measure_window(bench, place.waiting, seconds, feeder))
    place.claims.append(claim_sample(bench))
