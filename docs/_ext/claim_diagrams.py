"""Draws which job is next, and turns by weight; both are computed as a claim does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drawing import Drawing


@dataclass(frozen=True)
class Queue:
    """A tenant queue of an example. Queues that are blocked have no free slots."""

    name: str
    free: int
    jobs: Sequence[int]
    weight: int = 1
    slots: str = ""


def served(lane: Sequence[Queue], room: int, used: int = 0) -> list[tuple[str, int]]:
    """Return what a claim takes of a lane: name of the queue, and job.

    As in sql/claim/claim_jobs.sql. `used`: the jobs that the first queue has had of its turn.
    """
    ranked = [
        ((nth + (used if place == 0 else 0)) // queue.weight, place, nth, (queue.name, job))
        for place, queue in enumerate(lane)
        for nth, job in enumerate(queue.jobs[: queue.free])
    ]
    return [taken for *_, taken in sorted(ranked)][:room]


# which job is next

ROOM = 6
LANES = (
    (
        "HIGH",
        (
            Queue("acme / mail", 2, (12, 15, 19), slots="2 of 2 slots free"),
            Queue("globex / mail", 0, (11, 13), slots="0 of 2 slots free"),
            Queue("initech / mail", 3, (14,), slots="3 of 3 slots free"),
        ),
    ),
    (
        "DEFAULT",
        (
            Queue("acme / reports", 4, (3, 4, 8), slots="4 of 4 slots free"),
            Queue("globex / reports", 2, (5, 9), slots="2 of 4 slots free"),
        ),
    ),
)
RULES = (
    ("1. Lane", "lowest first"),
    ("2. Turn", "queue by queue"),
    ("3. Place", "lowest id first"),
    ("4. Slots", "full ones wait"),
)


def draw_next_job() -> str:
    """Return docs/images/next-job.svg."""
    from django_tenantqueue.states import Priority

    order: list[tuple[str, int]] = []
    for _, queues in LANES:
        order += served(queues, ROOM - len(order))
    heights = [40 + 62 * len(queues) + 8 for _, queues in LANES]
    drawing = Drawing(
        112 + sum(heights) + 14 * len(LANES) + 34,
        title="Which job is next",
        about=f"A claim with room for {ROOM} jobs takes them in this order: "
        + ", ".join(f"job {job} of {queue}" for queue, job in order)
        + ". The other ready jobs wait.",
    )
    for number, (name, text) in enumerate(RULES):
        drawing.box(20 + number * 143, 16, 131, 56, name, text, look="blue")
        if number:
            drawing.arrow((8 + number * 143, 44), (20 + number * 143, 44))
    drawing.text(20, 98, f"A claim with room for {ROOM} jobs takes them in the order 1 to {ROOM}.")
    y = 112
    for (name, queues), height in zip(LANES, heights, strict=True):
        drawing.box(20, y, 560, height)
        drawing.text(36, y + 27, f"Lane {getattr(Priority, name)}", look="title")
        drawing.text(
            150, y + 27, f"priority={getattr(Priority, name)} (Priority.{name})", look="quiet"
        )
        for nth, queue in enumerate(queues):
            _draw_queue(drawing, y + 40 + nth * 62, queue, order)
        y += height + 14
    drawing.dot(34, y + 12, look="green", radius=10)
    drawing.text(52, y + 17, "taken by this claim")
    drawing.box(206, y + 2, 26, 20, look="empty dashed")
    drawing.text(242, y + 17, "stays ready: no free slot, or no more room")
    return drawing.svg()


def _draw_queue(drawing: Drawing, y: float, queue: Queue, order: Sequence[tuple[str, int]]) -> None:
    drawing.text(36, y + 24, queue.name, look="strong")
    drawing.text(36, y + 44, queue.slots, look="quiet")
    for number, job in enumerate(queue.jobs):
        x = 208 + number * 120
        if (queue.name, job) in order:
            drawing.box(x, y + 8, 96, 42, f"job {job}", look="green")
            at = order.index((queue.name, job)) + 1
            drawing.dot(x + 96, y + 12, look="green", radius=11, text=str(at))
        else:
            drawing.box(x, y + 8, 96, 42, look="empty dashed")
            drawing.text(x + 48, y + 34, f"job {job}", look="quiet", anchor="middle")


# turns

WEIGHTS = {"A": 3, "B": 1, "C": 1}
LOOKS = {"A": "blue", "B": "amber", "C": "green"}
TILE = 46


def claims(room: int, names: str = "ABC", count: int = 1) -> Iterator[str]:
    """Yield what claims take one after another, a letter for each job."""
    order, used = list(names), 0
    for _ in range(count):
        lane = [Queue(name, room, range(room), weight=WEIGHTS[name]) for name in order]
        taken = "".join(name for name, _ in served(lane, room, used))
        yield taken
        last = taken[-1]
        before = used if last == order[0] else 0
        used = (before + taken.count(last)) % WEIGHTS[last]
        at = order.index(last) + (0 if used else 1)
        order = order[at:] + order[:at]


def draw_turns() -> str:
    """Return docs/images/turns.svg."""
    whole, alone = next(claims(10)), next(claims(10, "AC"))
    small = list(claims(7, count=3))
    drawing = Drawing(
        580,
        title="Turns by weight",
        about=f"Queue A has weight 3, B and C have weight 1. A claim of 10 jobs takes {whole}. "
        f"Three claims of 7 jobs take {', '.join(small)}. Without jobs of B, a claim of 10 takes "
        f"{alone}.",
    )
    for number, (name, weight) in enumerate(WEIGHTS.items()):
        drawing.box(
            20 + number * 192, 16, 176, 36, f"queue {name}: weight {weight}", look=LOOKS[name]
        )
    drawing.text(20, 90, "A claim with room for 10 jobs", look="title")
    _tiles(drawing, 104, whole)
    turn = sum(WEIGHTS.values())
    for number, name in enumerate(("first turn of each queue", "second turn of each queue")):
        x = 20 + number * turn * (TILE + 8)
        end = x + turn * (TILE + 8) - 8
        drawing.line((x, 162), (x, 168), (end, 168), (end, 162))
        drawing.text((x + end) / 2, 187, name, anchor="middle")
    drawing.text(20, 232, "Three claims of one worker, each with room for 7", look="title")
    for number, taken in enumerate(small):
        _tiles(drawing, 246 + number * 56, taken)
        drawing.text(
            20 + 7 * (TILE + 8) + 8, 274 + number * 56, f"claim {number + 1}", look="quiet"
        )
    drawing.text(20, 432, "A claim continues a turn that the last one has begun.", look="quiet")
    drawing.text(20, 488, "Queue B has no jobs: the others share the room", look="title")
    _tiles(drawing, 502, alone)
    return drawing.svg()


def _tiles(drawing: Drawing, y: float, names: str) -> None:
    for number, name in enumerate(names):
        drawing.box(20 + number * (TILE + 8), y, TILE, TILE - 4, name, look=LOOKS[name])
