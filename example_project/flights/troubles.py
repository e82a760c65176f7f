"""Problems to find and fix in the admin, one of each kind, and rules that watch for them.

A second call creates only those that were fixed.
"""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from django_tenantqueue import Every, Serial, Task, control
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import AlertRule
from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.contrib.routing.control import make_routing
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.models import Change, ConcurrentJobMonitor, Job, TenantQueue

from . import tasks
from .plans import EXPORTS, HEAVY, REPORTS

OPERATOR = "maria"
"""The actor in the list of changes."""
CREATED_BY = "troubles"
MONITOR = "Flights for the airports"


def make_troubles() -> list[str]:
    """Create missing problems; return a line about each."""
    makers = (
        _paused_queue,
        _queue_without_slots,
        _full_queue,
        _failing_task,
        _halted_session,
        _capped_task,
        _user_with_cap,
        _monitor_short_of_slots,
        _rules,
    )
    with control.acting_as(OPERATOR, Change.Source.COMMAND):
        return [make() for make in makers]


def _paused_queue() -> str:
    queue = _queue("AS", REPORTS)
    queue.pause()
    _fill(40, tasks.worst_days, tenant="AS", days=20)
    return "Queue AS / reports is paused, with a backlog."


def _queue_without_slots() -> str:
    queue = _queue("VX", REPORTS)
    queue.tune(num_slots=0)
    _fill(12, tasks.fleet_age, tenant="VX")
    return "Queue VX / reports has no slots."


def _full_queue() -> str:
    _queue("HA", EXPORTS)
    _fill(20, tasks.export_flights, tenant="HA", airport="LGA", seconds=20)
    return "Queue HA / exports is full: it has one slot and slow jobs. It is late after a minute."


def _failing_task() -> str:
    for airline in ("UA", "B6", "EV", "DL"):
        _fill(30, tasks.carbon_cost, tenant=airline, outages=9)
        _fill(34, tasks.carbon_cost, tenant=airline, outages=2)
    return "Task carbon_cost fails: the price service is down."


def _halted_session() -> str:
    options = {"tenant": "AA", "session": Serial("month-end", on_failure="halt")}
    if not _unfinished(tasks.punctuality, "AA"):
        tasks.route_delays.using(created_by=CREATED_BY, **options).delay(airport="XXX")
    _fill(8, tasks.punctuality, **options)
    return "Session month-end of AA was halted by a failed job."


def _capped_task() -> str:
    control.tune(task=tasks.knock_on, num_slots=1)
    for airline in ("US", "WN", "FL"):
        _fill(8, tasks.knock_on, tenant=airline, hours=168, everyone=True)
    return "Task knock_on is limited to one job at a time, for all airlines."


def _user_with_cap() -> str:
    _queue("EV", EXPORTS, num_slots=4)
    control.limit_user("EV", "intern", 1)
    _fill(10, tasks.export_flights, tenant="EV", limit_user="intern", airport="JFK", seconds=30)
    return "User intern of EV is limited to one job at a time."


def _monitor_short_of_slots() -> str:
    _queue("DL", EXPORTS, num_slots=2)
    newest = ConcurrentJobMonitor.objects.filter(tenant="DL", name=MONITOR).order_by("-id").first()
    if newest is None or not Job.objects.unfinished().filter(pk=newest.anchor_id).exists():
        airports = ["N/A"] * 3 + ["EWR"] * 6 + ["XXX"] * 2 + ["EWR"] * 60
        ConcurrentJobMonitor.objects.start(
            MONITOR,
            (tasks.export_flights.call(airport=code, seconds=12) for code in airports),
            parallel=8,
            tenant="DL",
            created_by=CREATED_BY,
        )
    return f"Monitor “{MONITOR}” of DL waits for the two slots of its queue. Some exports failed."


def _rules() -> str:
    if not AlertRule.objects.exists():
        make_alert_rule("Slow queues", "queue_late", threshold=60, log=True)
        make_alert_rule("Failing tasks", "task_failing", threshold=50, log=True)
        make_alert_rule("Sessions of AA", "session_halted", tenant="AA", log=True)
    if not RetentionRule.objects.exists():
        make_retention_rule(keep_days=400, results_days=30)
        make_retention_rule(state="error", keep_days=800)
        make_retention_rule(tenant="UA", task=tasks.logbook.name, keep_days=7)
    if not Routing.objects.exists():
        make_routing(tasks.knock_on.name, HEAVY)
        make_routing("imports.*", REPORTS, tenant="UA")
    if not Schedule.objects.exists():
        tomorrow = timezone.now() + timedelta(days=1)
        for name, task, hours in (
            ("Fleet age", tasks.fleet_age, 24),
            ("Worst days", tasks.worst_days, 168),
        ):
            make_schedule(
                name, task, Every(hours=hours), tenant=None, queue=REPORTS, starts_at=tomorrow
            )
    return (
        "Alert rules watch for these problems. Schedules, routings and retention rules exist, too."
    )


def _queue(airline: str, name: str, num_slots: int = 1) -> TenantQueue:
    queue, _ = TenantQueue.objects.get_or_create(
        tenant=airline, name=name, defaults={"num_slots": num_slots}
    )
    return queue


def _unfinished(task: Task[..., Any], airline: str) -> int:
    mine = Job.objects.unfinished().filter(task=task.name, created_by=CREATED_BY)
    return mine.filter(queue__tenant=airline).count()


def _fill(count: int, task: Task[..., Any], *, tenant: str, **given: Any) -> None:
    """Enqueue jobs up to `count` unfinished ones. `given`: options and arguments."""
    named = {name: given.pop(name) for name in ("session", "limit_user") if name in given}
    missing = count - _unfinished(task, tenant)
    task.using(tenant=tenant, created_by=CREATED_BY, **named).enqueue_many([given] * missing)
