"""From when a condition holds: what pages, commands, metrics and alerts call late or failing.

How a condition is found is in conditions/found.py, and its text in conditions/core.py. A worker is
silent after SILENT of models/worker.py.
"""

from __future__ import annotations

from datetime import timedelta

from ..queries.survey import TAKEN_MARGIN_SECONDS

LATE_SECONDS = 60.0
"""A queue's first job, a schedule or the maintenance is late when it is due for longer."""
PROMOTION_LATE = timedelta(seconds=LATE_SECONDS / 6)
"""The same of a scheduled job that is not ready yet."""
FAILED_WITHIN = timedelta(hours=1)
"""The time whose failures make a task or a queue a problem; "the last hour" in texts."""
FAILING_LEAST = 10
"""Failed runs from which a task may be a problem."""
FAILING_SHARE = 0.5
"""Share of a task's runs that failed, from which it is a problem, also in rules that name none."""
DIED_WITHIN = timedelta(hours=1)
"""The time in which deaths of workers are a problem; "the last hour" in the text."""
CLOCK_SECONDS = TAKEN_MARGIN_SECONDS / 10
"""A clock that differs from the server's by more than this is a problem."""
DUTY_SECONDS = 86_400.0
"""A duty that was not done for longer is that of an app that was removed: its error is none."""
