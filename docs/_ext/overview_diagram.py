"""Draws the sites, PostgreSQL and the workers, and what goes between them."""

from __future__ import annotations

from drawing import Drawing


def draw_overview() -> str:
    """Return docs/images/overview.svg."""
    from django_tenantqueue.models.worker import HEARTBEAT_SECONDS
    from django_tenantqueue.worker.connection import PROBE_SECONDS

    drawing = Drawing(
        640,
        title="Sites, PostgreSQL and workers",
        about="A site inserts jobs in its own transaction and, after the commit, notifies a "
        "sleeping worker. Workers claim jobs and store their ends in PostgreSQL. A worker is a "
        "supervisor with child processes, whose threads and event loop run the jobs.",
    )
    drawing.box(20, 20, 560, 60, "Your sites", "Django processes: views, commands, jobs")
    drawing.arrow((60, 80), (60, 168))
    drawing.text(72, 118, "INSERT of the job,", "in your transaction")
    drawing.arrow((330, 80), (330, 168))
    drawing.text(342, 118, "after the commit: NOTIFY,", "if a worker sleeps")

    drawing.box(20, 168, 560, 122, look="blue")
    drawing.text(36, 194, "PostgreSQL", look="title")
    tables = (
        ("your tables", "your rows"),
        ("queues", "slots, weights"),
        ("jobs", "and their history"),
        ("workers", "heartbeats"),
    )
    for number, (name, text) in enumerate(tables):
        drawing.box(36 + number * 134, 210, 126, 62, name, text)

    drawing.arrow((60, 396), (60, 292))
    drawing.text(
        72, 330, "advisory locks:", "one for each child,", _every("checked", PROBE_SECONDS)
    )
    drawing.arrow((266, 396), (266, 292))
    drawing.text(278, 330, "claim and finish jobs:", "one round trip")
    drawing.text(278, 368, _every("heartbeat", HEARTBEAT_SECONDS))
    drawing.arrow((462, 292), (462, 396))
    drawing.text(474, 340, "NOTIFY wakes", "a sleeping one")

    drawing.box(20, 396, 560, 224, look="green")
    drawing.text(36, 422, "Workers: manage.py runworker on each machine", look="title")
    drawing.box(36, 440, 156, 162)
    drawing.text(50, 466, "Supervisor", look="strong")
    drawing.text(50, 490, "starts and replaces", "child processes")
    drawing.text(50, 540, "one of all also does", "the maintenance")
    drawing.arrow((192, 520), (238, 520))
    drawing.text(215, 510, "fork", anchor="middle")
    drawing.box(250, 448, 318, 162)
    drawing.box(240, 438, 318, 162)
    drawing.text(254, 464, "Child processes", look="strong")
    drawing.box(254, 478, 290, 34, "claim loop", look="empty")
    drawing.arrow((320, 512), (320, 536))
    drawing.arrow((474, 512), (474, 536))
    drawing.box(254, 536, 136, 52, "threads", "blocking tasks", look="empty")
    drawing.box(402, 536, 142, 52, "event loop", "coroutines", look="empty")
    return drawing.svg()


def _every(what: str, seconds: float) -> str:
    return f"{what} every second" if seconds == 1 else f"{what} every {seconds:g} s"
