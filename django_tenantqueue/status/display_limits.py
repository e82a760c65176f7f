"""How much pages, reports and answers read and show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NAMED = 5
"""Queues, tasks or jobs that a sentence or a line names. It counts the others."""
LISTED = 20
"""Rows that a part of a page or a message lists."""
PAGE = 50
"""Rows of a page that is a list."""
COUNTED_TO = 1000
"""Counts shown to operators stop here ("1000+"). An exact one would read the whole backlog."""
TOTAL_COUNTED_TO = COUNTED_TO * 10
"""The same of all queues together."""
READ = 20_000
"""Rows, or entries of an index, that one page reads to find what it shows."""
VISITED = READ // 10
"""The same where each costs an index probe of its own, such as queues with ready jobs."""

LINE = 160
"""Characters of a value or a message that a line shows."""
MESSAGE = 2000
"""Characters of an error that a row keeps, or that a page reads of a job."""
TEXT = 10_000
"""Characters of a text that a page shows as a whole: arguments, a result, a traceback."""

PERIODS = {1: 60.0, 24: 3600.0, 168: 10_800.0}
"""Ranges of figures that pages offer: hours, and the seconds of one point of the chart."""


def starts_of_periods(hours: int, now: datetime) -> list[datetime]:
    """Return where the periods of a range begin. `now` is in the last one."""
    seconds = PERIODS[hours]
    moment = now.timestamp()
    since = datetime.fromtimestamp(moment - moment % seconds - hours * 3600, UTC)
    count = round(hours * 3600 / seconds) + 1
    return [since + timedelta(seconds=seconds * number) for number in range(count)]
