"""How much pages, reports and answers read and show, and from when they call something late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NAMED = 5
"""Queues, tasks or jobs that a sentence or a line names. It counts the others. Halved or doubled:
shorter or longer sentences."""
LISTED = 20
"""Rows that a part of a page or a message lists. Halved: more is found only by a filter. Doubled:
pages are longer, and load more slowly."""
PAGE = 50
"""Rows of a page that is a list. Halved: twice as many pages. Doubled: each is read for twice as
long."""
COUNTED_TO = 1000
"""Counts shown to operators stop here ("1000+"). An exact count would read the whole backlog.
Halved: it is shown more often. Doubled: pages with counts take longer where backlogs are long."""
TOTAL_COUNTED_TO = COUNTED_TO * 10
"""The same of all queues together."""
READ = 20_000
"""Rows, or entries of an index, that one page reads to find what it shows. Halved: in large systems
a page reaches back less far. Doubled: it takes twice as long there."""
VISITED = READ // 10
"""The same where each costs an index probe of its own, such as queues with ready jobs."""

LINE = 160
"""Characters of a value or a message that a line shows. Halved: more messages are cut off. Doubled:
a line takes up to three lines of a page."""
MESSAGE = 2000
"""Characters of an error that a row keeps, or that a page reads of a job. Halved: long messages
lose their ends. Doubled: the rows and pages are larger."""
TEXT = 10_000
"""Characters of a text that a page shows as a whole: arguments, a result, an error in a tooltip.
Halved: more texts are downloaded. Doubled: a page of errors may have megabytes."""

LATE_SECONDS = 60.0
"""How long a queue's first job, a schedule or the maintenance may be due before it is called late.
Halved: a change of the leader on a busy server is reported, too. Doubled: a fleet without
maintenance is reported later."""
PERIODS = {1: 60.0, 24: 3600.0, 168: 10_800.0}
"""The ranges of figures that pages offer: their hours, and the seconds of one of their periods.
Halved or doubled: charts have twice or half as many points."""


def starts_of_periods(hours: int, now: datetime) -> list[datetime]:
    """Return where the periods of a range begin. `now` is in the last one."""
    seconds = PERIODS[hours]
    moment = now.timestamp()
    since = datetime.fromtimestamp(moment - moment % seconds - hours * 3600, UTC)
    count = round(hours * 3600 / seconds) + 1
    return [since + timedelta(seconds=seconds * number) for number in range(count)]
