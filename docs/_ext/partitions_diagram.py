"""Draws the partitions of the table of jobs over the months."""

from __future__ import annotations

from datetime import UTC, date, datetime

from drawing import LINE, Drawing

TODAY = date(2026, 11, 27)
HOT, LEAVES, RIGHT = 20, 308, 580
ROW = 38


def draw_partitions() -> str:
    """Return docs/images/partitions.svg, for the default settings."""
    from django_tenantqueue.operations.history import (
        DEFAULT_LEAF,
        leaf_name,
        next_month,
        oldest_kept,
    )
    from django_tenantqueue.settings import Settings

    settings = Settings()
    kept, ahead = settings.history_keep_months, settings.history_ahead_months
    now = TODAY.replace(day=1)
    coming = [next_month(now)]
    while len(coming) < ahead:
        coming.append(next_month(coming[-1]))
    last = date(now.year, now.month - 1, 1)
    oldest = oldest_kept(kept, datetime(TODAY.year, TODAY.month, TODAY.day, tzinfo=UTC))
    assert oldest is not None
    dropped = date(oldest.year, oldest.month - 1, 1)
    rows = [
        *((leaf_name(month), "plain") for month in reversed(coming)),
        (leaf_name(now), "green"),
        (leaf_name(last), "blue"),
        ("…", ""),
        (leaf_name(oldest.date()), "blue"),
        (leaf_name(dropped), "empty dashed"),
        (DEFAULT_LEAF, "plain"),
    ]
    top = 176
    drawing = Drawing(
        top + ROW * len(rows) + 16,
        title="Partitions of the table of jobs",
        about=f"Unfinished jobs are in tenantqueue_job_hot. A job that ends in {now:%B %Y} moves "
        f"to {leaf_name(now)}. Partitions exist for {ahead} months ahead. The months from "
        f"{oldest:%B %Y} on are kept, and {dropped:%B %Y} is dropped.",
    )
    drawing.box(HOT, 16, RIGHT - HOT, 52, "tenantqueue_job", "all jobs")
    drawing.line((130, 68), (130, 104))
    drawing.line((450, 68), (450, 104))
    drawing.box(HOT, 104, 236, 60, "tenantqueue_job_hot", "final = false: unfinished", look="blue")
    drawing.box(
        LEAVES - 14,
        104,
        RIGHT - LEAVES + 14,
        60,
        "tenantqueue_job_history",
        "final = true, by finished_at",
    )
    places = {name: top + ROW * number for number, (name, _) in enumerate(rows)}
    for name, look in rows:
        y = places[name]
        if look:
            drawing.box(LEAVES, y, RIGHT - LEAVES, ROW - 8, look=look)
        drawing.text(LEAVES + 10 if look else 450, y + 20, name)
    here = places[leaf_name(now)] + 15
    drawing.arrow((60, 164), (60, here), (LEAVES, here))
    drawing.text(72, here - 12 - LINE, "a job ends: DELETE and", "INSERT, one statement")
    first, final = places[leaf_name(coming[-1])], places[leaf_name(coming[0])] + ROW - 8
    _bracket(drawing, first, final)
    drawing.text(
        LEAVES - 22, first + 20, f"made {ahead} months", "ahead", look="quiet", anchor="end"
    )
    first, final = places[leaf_name(last)], places[leaf_name(oldest.date())] + ROW - 8
    _bracket(drawing, first, final)
    drawing.text(
        LEAVES - 22,
        (first + final) / 2 + 5,
        f"the last {kept} months: kept",
        look="quiet",
        anchor="end",
    )
    drawing.text(
        LEAVES - 22,
        places[leaf_name(dropped)] + 20,
        "older: emptied, then dropped",
        look="quiet",
        anchor="end",
    )
    drawing.text(
        LEAVES - 22, places[DEFAULT_LEAF] + 20, "normally empty", look="quiet", anchor="end"
    )
    return drawing.svg()


def _bracket(drawing: Drawing, first: float, last: float) -> None:
    x = LEAVES - 14
    drawing.line((x + 6, first), (x, first), (x, last), (x + 6, last))
