"""Draws the gates of a job in their order."""

from __future__ import annotations

from drawing import Drawing

CONDITIONS = {
    "monitor": "fewer than “parallel” details are in flight",
    "session": "no other job of the session is past this gate",
    "limit_user": "fewer jobs of the user than its limit are past it",
    "exclusive": "no other job with the key is past this gate",
    "task": "the task is not paused, full or beyond its rate",
}
"""When each gate is passed, by the value of `held_by`."""
LEFT, RIGHT, HEIGHT, ROW = 70, 580, 44, 64


def draw_gates() -> str:
    """Return docs/images/gates.svg. KeyError for a gate without a condition."""
    from django_tenantqueue.gate_keys import ORDER, TASK

    gates = [name for name in ORDER if name != TASK]
    middle = (LEFT + RIGHT) / 2
    ready = 20 + ROW * (len(gates) + 1)
    drawing = Drawing(
        ready + 3 * ROW + 76,
        title="The gates of a job, in their order",
        about="After its INSERT a job passes "
        + ", ".join(f"{name} ({CONDITIONS[name]})" for name in gates)
        + f". Then it is ready. A claim checks the last one, {TASK} ({CONDITIONS[TASK]}). "
        "A job skips the gates that it does not have.",
    )
    width = RIGHT - LEFT
    drawing.box(LEFT, 20, width, HEIGHT, "enqueued", look="blue")
    for number, name in enumerate(gates, 1):
        y = 20 + ROW * number
        drawing.arrow((middle, y - ROW + HEIGHT), (middle, y))
        _draw_gate(drawing, y, name)
    drawing.arrow((middle, ready - ROW + HEIGHT), (middle, ready))
    drawing.box(LEFT, ready, width, HEIGHT, "ready: the next claim may take it", look="blue")
    drawing.line((LEFT, 42), (30, 42), (30, ready + 22))
    drawing.arrow((30, ready + 22), (LEFT, ready + 22))
    drawing.text(36, (42 + ready) / 2, "no", "gate", look="quiet")
    task = ready + ROW
    drawing.arrow((middle, ready + HEIGHT), (middle, task))
    _draw_gate(drawing, task, TASK)
    drawing.arrow((middle, task + HEIGHT), (middle, task + ROW))
    drawing.box(LEFT, task + ROW, width, HEIGHT, "queued: it holds a slot", look="green")
    drawing.text(
        LEFT,
        task + ROW + HEIGHT + 24,
        "Amber: a job that may not pass is held, and held_by names the gate.",
        "A job skips the gates that it does not have. One that its task held",
        "returns to its monitor, user limit or exclusive key, or is ready.",
        look="quiet",
    )
    return drawing.svg()


def _draw_gate(drawing: Drawing, y: float, name: str) -> None:
    drawing.box(LEFT, y, RIGHT - LEFT, HEIGHT, look="amber")
    drawing.text(LEFT + 16, y + 27, name, look="strong")
    drawing.text(LEFT + 124, y + 27, f"if {CONDITIONS[name]}")
