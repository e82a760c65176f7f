"""Draws how soon the jobs of a dead worker are ready again."""

from __future__ import annotations

from dataclasses import dataclass

from drawing import LINE, Drawing

LEFT, RIGHT, TOP = 24, 560, 64


@dataclass(frozen=True)
class Death:
    """One kind of death: what follows, by seconds. Its jobs are ready again at the last of them."""

    title: str
    events: tuple[tuple[float, str], ...]


def deaths() -> tuple[Death, ...]:
    """Return the kinds of death with the times of the code."""
    from django_tenantqueue.models.worker import SILENT
    from django_tenantqueue.operations.rescue import LOOK_SECONDS
    from django_tenantqueue.worker.connection import PROBE_SECONDS
    from django_tenantqueue.worker.supervisor.lease import LEASE_SECONDS, SERVER_KEEPALIVE

    lost = SERVER_KEEPALIVE["idle"] + SERVER_KEEPALIVE["interval"] * SERVER_KEEPALIVE["count"]
    silent = SILENT.total_seconds()
    return (
        Death(
            "A child process dies",
            ((0.0, "its supervisor rescues its jobs and starts another child"),),
        ),
        Death(
            "A supervisor dies, and its children with it",
            (
                (0.0, "PostgreSQL frees its advisory locks"),
                (LOOK_SECONDS, "the leader rescues the jobs"),
            ),
        ),
        Death(
            "The machine or its network is lost",
            (
                (LEASE_SECONDS, "a supervisor that is alive kills its children"),
                (lost, "PostgreSQL gives up the connection and frees the locks"),
                (lost + LOOK_SECONDS, "the leader rescues the jobs"),
            ),
        ),
        Death(
            "Behind a transaction pooler, which allows no locks",
            (
                (silent, "a supervisor that is alive kills a child without heartbeat"),
                (silent + LOOK_SECONDS + PROBE_SECONDS, "the leader rescues the jobs"),
            ),
        ),
    )


def draw_death() -> str:
    """Return docs/images/dead-worker.svg."""
    kinds = deaths()
    times = sorted({at for death in kinds for at, _ in death.events})
    step = (RIGHT - LEFT) / (len(times) - 1)
    at = {seconds: LEFT + step * number for number, seconds in enumerate(times)}
    heights = [70 + LINE * len(death.events) for death in kinds]
    drawing = Drawing(
        TOP + sum(heights) + 36,
        title="A worker dies: when its jobs are ready again",
        about=" ".join(
            f"{death.title}: {'; '.join(f'{s:g} s: {text}' for s, text in death.events)}."
            for death in kinds
        ),
    )
    bottom = TOP + sum(heights) - 8
    for seconds, x in at.items():
        drawing.text(x, 26, f"{seconds:g} s", look="small strong", anchor="middle")
        for top in (34, *(TOP + sum(heights[:number]) + 24 for number in range(len(kinds)))):
            drawing.line((x, top), (x, top + 12), look="rule")
    y = TOP
    for death, height in zip(kinds, heights, strict=True):
        drawing.text(LEFT - 6, y + 10, death.title, look="title")
        end = death.events[-1][0]
        drawing.line((LEFT, y + 30), (RIGHT, y + 30), look="rule")
        if end:
            drawing.box(LEFT, y + 24, at[end] - LEFT, 12, look="red", round_by=2)
        for seconds, _ in death.events[:-1]:
            drawing.dot(at[seconds], y + 30, look="amber", radius=7)
        drawing.dot(at[end], y + 30, look="green", radius=8)
        lines = [f"{seconds:g} s: {text}" for seconds, text in death.events]
        drawing.text(LEFT - 6, y + 57, *lines)
        y += height
    drawing.dot(LEFT, bottom + 22, look="green", radius=8)
    drawing.text(LEFT + 14, bottom + 27, "the jobs are ready again")
    drawing.box(LEFT + 200, bottom + 16, 34, 12, look="red", round_by=2)
    drawing.text(LEFT + 242, bottom + 27, "they have no worker. Not to scale.")
    return drawing.svg()
