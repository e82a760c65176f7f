"""Draws how a job passes its session, and a detail its monitor."""

from __future__ import annotations

from drawing import Drawing

XS, TOP, BOX, HEIGHT = (16, 172, 328, 484), 60, 100, 44
"""Where the boxes begin, and their size."""
BELOW = 176
"""The top of the box of a job that waits for another attempt."""


def draw_session() -> str:
    """Return docs/images/session.svg."""
    drawing = Drawing(
        256,
        title="A job in a session",
        about="A release makes the first held job the next one. A claim starts it. After a "
        "failure it waits for another attempt and is next again; with on_wait='skip' it is held "
        "again. For a more urgent job, or a pause, the next job is held again.",
    )
    _draw_line(drawing, ("held", "next", "running", "ended"), "release")
    _draw_frame(drawing, "at most one job of the session")
    drawing.text(16, BELOW - 52, "back: pause, or", "more urgent job")
    drawing.arrow((XS[2] - 20, BELOW + 38), (8, BELOW + 38), (8, TOP + 22), (XS[0], TOP + 22))
    drawing.text(16, BELOW + 58, 'on_wait="skip"')
    return drawing.svg()


def draw_monitor() -> str:
    """Return docs/images/monitor.svg."""
    drawing = Drawing(
        256,
        title="A detail of a monitor",
        about="A detail is held until the monitor feeds it. From then on it is in flight: "
        "ready, running, or waiting for another attempt. At most “parallel” details are in "
        "flight. When there are too many, or the monitor is paused, it is held again.",
    )
    _draw_line(drawing, ("held", "ready", "running", "ended"), "feed")
    _draw_frame(drawing, "in flight: at most “parallel”")
    drawing.text(16, BELOW - 52, "back: pause, or", "too many")
    return drawing.svg()


def _draw_frame(drawing: Drawing, text: str) -> None:
    left, right = XS[1] - 6, XS[2] + BOX + 30
    drawing.box(left, 14, right - left, BELOW + 56, look="empty dashed")
    drawing.text(left + 12, 36, text, look="small strong")


def _draw_line(drawing: Drawing, names: tuple[str, str, str, str], first: str) -> None:
    looks = ("amber", "blue", "green", "plain")
    for x, name, look in zip(XS, names, looks, strict=True):
        drawing.box(x, TOP, BOX, HEIGHT, name, look=look, round_by=22 if name == "ended" else 6)
    for x in XS[:3]:
        drawing.arrow((x + BOX, TOP + 14), (x + BOX + 56, TOP + 14))
    for x, label in zip(XS, (first, "claim"), strict=False):
        drawing.text(x + BOX + 23, TOP + 6, label, anchor="middle")
    drawing.arrow((XS[1], TOP + 32), (XS[0] + BOX, TOP + 32))
    drawing.box(XS[2] - 20, BELOW, BOX + 40, HEIGHT + 6, "waits", "for an attempt", look="amber")
    drawing.arrow((XS[2] + 50, TOP + HEIGHT), (XS[2] + 50, BELOW))
    drawing.text(XS[2] + 60, (TOP + HEIGHT + BELOW) / 2 + 5, "fails")
    drawing.arrow((XS[2] - 20, BELOW + 14), (XS[1] + 50, BELOW + 14), (XS[1] + 50, TOP + HEIGHT))
    drawing.text(XS[1] + 60, BELOW - 20, "due again")
