"""Connects schedules to the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.core.checks import register
from django.db.models import Model, Q

from ...features import Condition, Duty, Feature
from ...when_due import WhenDue
from .declared import check_schedules, read_schedule, sync_schedules
from .firing import fire_schedules, seconds_to_next_schedule
from .models import Schedule
from .services import (
    delete_schedules,
    disable_schedules,
    enable_schedules,
    make_due,
    tune_schedule,
)
from .troubles import CONDITIONS

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand

    from ...tasks import Task


class Schedules(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        register(check_schedules, "tenantqueue")

    def task_options(self) -> Mapping[str, Callable[[Task[..., Any], Any], Any]]:
        return {"schedule": read_schedule}

    def worker_started(self, using: str) -> None:
        sync_schedules(using)

    def duties(self) -> Iterable[Duty]:
        due = WhenDue(seconds_to_next_schedule, fire_schedules)
        yield Duty("fire_schedules", due.step, 1.0, pause_after=due.pause_after)

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        from .management.subcommands.import_beat import ImportBeat
        from .management.subcommands.schedules_list import ListSchedules
        from .management.subcommands.schedules_sync import SyncSchedules

        return {
            "schedules list": ListSchedules,
            "schedules sync": SyncSchedules,
            "schedules import-beat": ImportBeat,
        }

    def conditions(self) -> Iterable[Condition]:
        return CONDITIONS

    def lists(self) -> Mapping[str, type[Model]]:
        return {"schedules": Schedule}

    def operations(self) -> Mapping[type[Model], Mapping[str, Callable[..., Collection[int]]]]:
        return {
            Schedule: {
                "pause": disable_schedules,
                "resume": enable_schedules,
                "run_now": make_due,
                "tune": tune_schedule,
                "delete": delete_schedules,
            }
        }

    def audited(self) -> Mapping[str, type[Model]]:
        return {"schedule": Schedule}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {Schedule: "tenant"}

    def close_tenant(self, using: str, tenant: str) -> None:
        Schedule.objects.using(using).filter(tenant=tenant).update(enabled=False)

    def forget_tenant(self, using: str, tenant: str) -> None:
        """Remove the errors of schedules of every tenant or none: they may quote a job's values."""
        rows = Schedule.objects.using(using).filter(Q(tenant=None) | Q(tenant=""))
        rows.exclude(last_error="").update(last_error="")

    def run_due(self, using: str) -> bool:
        return fire_schedules(using) > 0
