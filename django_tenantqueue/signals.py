"""Signals. They announce; nothing in the package acts on them.

All are sent in the process that ran the job, outside any transaction of ours:

- `job_started(sender=task name, job_id, attempt)`
- `job_finished(sender=task name, job_id, state)`: the worker is about to store a final state
- `job_retried(sender=task name, job_id, attempt, error)`: it will run again
"""

from __future__ import annotations

from django.dispatch import Signal

job_started = Signal()
job_finished = Signal()
job_retried = Signal()
