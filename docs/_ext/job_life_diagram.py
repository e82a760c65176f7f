"""Draws the life of one job that fails once, with its columns after each step."""

from __future__ import annotations

from dataclasses import dataclass, field

from drawing import WIDTH, Drawing

NULL = "–"
COLUMNS = {
    "state": 44,
    "attempt": 134,
    "run_at": 194,
    "queued_at": 252,
    "started_at": 332,
    "worker_id": 416,
    "finished_at": 498,
}
"""The columns that are shown, and where each stands."""
TOP, ROW = 62, 62


@dataclass(frozen=True)
class Step:
    """One step, and the columns that it writes."""

    when: str
    text: str
    wrote: dict[str, str] = field(default_factory=dict)


STEPS = (
    Step(
        "09:00",
        "enqueued: an INSERT in your transaction",
        {
            "state": "ready",
            "attempt": "0",
            "run_at": "09:00",
            **dict.fromkeys(("queued_at", "started_at", "worker_id", "finished_at"), NULL),
        },
    ),
    Step(
        "09:02",
        "claimed by worker 7",
        {"state": "queued", "attempt": "1", "queued_at": "09:02", "worker_id": "7"},
    ),
    Step(
        "+{record:g} s",
        "still running, so its start is stored",
        {"state": "running", "started_at": "09:02"},
    ),
    Step(
        "09:05",
        "fails: the next attempt follows in 10 minutes",
        {
            "state": "scheduled",
            "run_at": "09:15",
            **dict.fromkeys(("queued_at", "started_at", "worker_id"), NULL),
        },
    ),
    Step("09:15", "its time has come: promoted by the maintenance", {"state": "ready"}),
    Step(
        "09:16",
        "claimed by worker 4",
        {"state": "queued", "attempt": "2", "queued_at": "09:16", "worker_id": "4"},
    ),
    Step(
        "+{record:g} s",
        "still running, so its start is stored",
        {"state": "running", "started_at": "09:16"},
    ),
    Step(
        "09:20",
        "returns: the row moves to the history",
        {"state": "success", "finished_at": "09:20"},
    ),
)
LOOKS = {"ready": "blue", "scheduled": "amber", "success": "plain"}
"""Looks of the dots by the state; green ones hold a slot."""


def draw_job_life() -> str:
    """Return docs/images/job-life.svg. KeyError for a column that a job does not have."""
    from django_tenantqueue.models import Job
    from django_tenantqueue.worker.child.running_jobs import RECORD_SECONDS

    known = {field.column for field in Job._meta.fields}
    if unknown := set(COLUMNS) - known:
        raise KeyError(f"docs/_ext/job_life_diagram.py: no columns of a job: {unknown}")
    bottom = TOP + ROW * len(STEPS)
    drawing = Drawing(
        bottom + 24,
        title="The life of a job that fails once",
        about="; ".join(
            f"{step.when.format(record=RECORD_SECONDS)} {step.text} "
            f"({', '.join(f'{name} {value}' for name, value in step.wrote.items())})"
            for step in STEPS
        ),
    )
    for name, x in COLUMNS.items():
        drawing.text(x, 30, name)
    drawing.line((20, 42), (WIDTH - 10, 42), look="rule")
    drawing.line((22, TOP + 4), (22, TOP + ROW * (len(STEPS) - 1)))
    values: dict[str, str] = {}
    for number, step in enumerate(STEPS):
        values |= step.wrote
        y = TOP + ROW * number
        drawing.dot(22, y + 2, look=LOOKS.get(values["state"], "green"), radius=7)
        drawing.text(44, y + 7, step.when.format(record=RECORD_SECONDS), look="strong")
        drawing.text(130, y + 7, step.text, look="strong")
        for name, x in COLUMNS.items():
            look = "new" if name in step.wrote else "quiet"
            drawing.text(x, y + 29, values[name], look=look)
        if number < len(STEPS) - 1:
            drawing.line((44, y + 42), (WIDTH - 10, y + 42), look="rule")
    drawing.text(44, bottom + 6, f"Blue: written by this step. {NULL}: NULL.", look="quiet")
    drawing.dot(330, bottom + 2, look="green", radius=7)
    drawing.text(344, bottom + 6, "holds a slot of its queue", look="quiet")
    return drawing.svg()
