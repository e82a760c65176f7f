"""What programs read about the fleet: whether workers are short, what it does, loads of queues.

Each function reads a bounded number of rows, whatever the backlog, and changes nothing. A coroutine
awaits its twin: `await aread_need()`.
"""

from __future__ import annotations

from .coroutines import twin
from .databases import database_of_call
from .operations.targets import Names, by_keyword
from .queries.control import QueueLoad
from .status import fleet_report
from .status.fleet_report import FleetReport, Need
from .status.queue_loads import loads


def read_need(*, using: str | None = None) -> Need:
    """Read whether more workers are needed, for autoscalers. Two statements.

    `startable`: ready jobs that would start at once if there were more workers, counted up to
    1,000. `oldest_wait_seconds`: for how long the first of them is ready; None: there is none.
    `running` jobs of the `threads` and `async_slots` that workers have.
    """
    return fleet_report.read_need(database_of_call("read_need", using))


def read_report(*, jobs: int = 5, using: str | None = None) -> FleetReport:
    """Read what `manage.py tenantqueue status` prints. Up to sixteen statements, and those of apps.

    `jobs`: of each worker, how many of its running jobs are listed. The report has `workers`,
    `counts`, `need` and `problems`.
    """
    return fleet_report.read_report(database_of_call("read_report", using), jobs=jobs)


def read_loads(queues: Names, *, using: str | None = None) -> dict[int, QueueLoad]:
    """Read the running and waiting jobs of queues, by the ids of the queues.

    `queues`: rows, a queryset, ids, names, or a single one. Each count stops at 1,000, so 1,000
    means "1,000 or more". Raises InvalidOption, and UnknownQueue for a name.
    """
    alias = database_of_call("read_loads", using, local=[queues])
    return loads(alias, by_keyword("read_loads", "queue", queues, alias).ids)


aread_need = twin(read_need)
aread_report = twin(read_report)
aread_loads = twin(read_loads)

__all__ = [
    "FleetReport",
    "Need",
    "QueueLoad",
    "aread_loads",
    "aread_need",
    "aread_report",
    "read_loads",
    "read_need",
    "read_report",
]
