"""What a run is made of, decided by its seed before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

PORTION = 25
"""Jobs of one transaction, all of one tenant."""
LONG_SHARE = 0.06
"""Jobs that take seconds instead of milliseconds."""
KINDS = ("plain", "atomic", "coroutine")
WEIGHTS = (50, 25, 25)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything."""

    jobs: int
    poison: int
    trouble_seconds: float
    drain_seconds: float
    waves: int
    """The jobs come in so many bursts."""
    longest_job: float
    longest_stop: float
    longest_outage: float
    longest_snapshot: float
    queues: int = 50
    most_slots: int = 5
    supervisors: int = 4
    processes: int = 2
    threads: int = 4
    async_slots: int = 50
    restarts: int = 3


FULL = Scale(
    jobs=20_000,
    poison=10,
    trouble_seconds=480.0,
    drain_seconds=600.0,
    waves=24,
    longest_job=6.0,
    longest_stop=8.0,
    longest_outage=6.0,
    longest_snapshot=150.0,
)
SHORT = Scale(
    jobs=1_500,
    poison=3,
    trouble_seconds=32.0,
    drain_seconds=180.0,
    waves=3,
    longest_job=3.0,
    longest_stop=4.0,
    longest_outage=1.5,
    longest_snapshot=20.0,
)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job to be enqueued."""

    kind: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Portion:
    """What is enqueued in one transaction."""

    tenant: str
    jobs: tuple[PlannedJob, ...]


def plan_slots(scale: Scale, seed: int) -> dict[str, int]:
    random = Random(f"{seed} slots")
    return {f"tenant {n:02}": random.randint(1, scale.most_slots) for n in range(scale.queues)}


def plan_waves(scale: Scale, seed: int) -> list[list[Portion]]:
    random = Random(f"{seed} jobs")
    tenants = list(plan_slots(scale, seed))
    kinds = [
        *["poison"] * scale.poison,
        *random.choices(KINDS, WEIGHTS, k=scale.jobs - scale.poison),
    ]
    random.shuffle(kinds)
    jobs = tuple(PlannedJob(kind, _milliseconds(kind, scale, random)) for kind in kinds)
    portions = [
        Portion(random.choice(tenants), jobs[start : start + PORTION])
        for start in range(0, len(jobs), PORTION)
    ]
    size = -(-len(portions) // scale.waves)
    return [portions[start : start + size] for start in range(0, len(portions), size)]


def _milliseconds(kind: str, scale: Scale, random: Random) -> float:
    if kind != "poison" and random.random() < LONG_SHARE:
        return round(random.uniform(1000, 1000 * scale.longest_job), 1)
    return round(random.uniform(0, 50), 1)
