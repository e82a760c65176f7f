"""Connects shards to the core."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.core.checks import Tags, register
from django.core.management.base import CommandError
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.urls import URLPattern
from django.utils.translation import gettext_lazy as _

from ...calls.sources import registered_tasks
from ...conf import settings_of
from ...exceptions import InvalidState, TenantMoving, Unsupported
from ...features import Condition, Feature, Severity
from ...queries.base import fetch
from ...status.conditions import Look, names
from ...status.display_limits import PAGE
from .checks import check_set_up, check_shards, find_problem
from .models import Shard, ShardMove, ShardPin
from .routes import aliases, are_sharded, forget_pins, shard_of, shard_of_id
from .services import forget_pin, note_switch
from .settings import ShardSettings
from .views import urls

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand


def _find_moves(look: Look) -> Iterable[Mapping[str, object]]:
    rows = ShardMove.objects.using(look.using).order_by("tenant")
    if look.tenants is not None:
        rows = rows.filter(tenant__in=sorted(look.tenants))
    return names(row.tenant for row in rows[:PAGE]) if are_sharded() else ()


CONDITIONS = (
    Condition(
        "move_not_completed",
        Severity.PEOPLE,
        title=_("move of a tenant that is not completed"),
        fleet=_("tenants that move to another database: %(names)s"),
        remedy=_("If no process moves it, run “tenantqueue shards move” again."),
        find=_find_moves,
        of_tenants=True,
    ),
)


class Shards(Feature):
    """See features.py for when each method is called."""

    settings = ShardSettings

    def ready(self) -> None:
        register(check_shards, "tenantqueue")
        register(check_set_up, Tags.database)

    def databases(self) -> Sequence[str]:
        return aliases() if are_sharded() else ()

    def choose_database(self, tenant: str) -> str | None:
        return shard_of(tenant) if are_sharded() else None

    def find_database(self, row_id: int, is_monitor: bool) -> str | None:
        try:
            return shard_of_id(row_id, is_monitor=is_monitor) if are_sharded() else None
        except Unsupported:
            return None  # no database of SHARDS has such a row

    def check_enqueue(self, using: str, tenant: str, task: str) -> None:
        if are_sharded():
            _check_task(using, tenant, task)
            _check_transaction(using, tenant)

    def check_queue(self, using: str, tenant: str) -> None:
        if are_sharded():
            _check_move(using, tenant)

    def switch_queues(
        self, using: str, queue_ids: Collection[int], columns: Mapping[str, bool]
    ) -> None:
        if are_sharded():
            note_switch(using, queue_ids, columns)

    def worker_started(self, using: str) -> None:
        if (problem := find_problem(using)) is not None:
            raise CommandError(problem)

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        from .management.subcommands.shards import (
            FindShard,
            ListShards,
            MoveTenant,
            PinTenant,
            SetUpShards,
            UnpinTenant,
        )

        return {
            "shards find": FindShard,
            "shards list": ListShards,
            "shards move": MoveTenant,
            "shards pin": PinTenant,
            "shards setup": SetUpShards,
            "shards unpin": UnpinTenant,
        }

    def conditions(self) -> Iterable[Condition]:
        return CONDITIONS

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {ShardPin: "tenant", ShardMove: "tenant"}

    def close_tenant(self, using: str, tenant: str) -> None:
        """Raise InvalidState while the tenant moves: its rows are in two databases."""
        if not are_sharded():
            return
        pin = ShardPin.objects.using(using).filter(tenant=tenant).first()
        places = {using} if pin is None else {using, aliases()[pin.shard]}
        moves = (ShardMove.objects.using(alias).filter(tenant=tenant) for alias in places)
        if any(rows.exists() for rows in moves):
            raise InvalidState(
                f"tenant {tenant!r} is being moved: complete the move, or cancel it, before its "
                "erasure"
            )

    def fleet_tables(self) -> Sequence[type[Model]]:
        return (Shard,)

    def forget_tenant(self, using: str, tenant: str) -> None:
        if are_sharded():  # else no process knows pins
            forget_pin(using, tenant)

    def urls(self) -> Sequence[URLPattern]:
        return urls()

    def forget(self) -> None:
        forget_pins()


def _check_task(using: str, tenant: str, name: str) -> None:
    """Raise Unsupported for an atomic task whose rows are in another database than its jobs."""
    task = registered_tasks().get(name)
    if not getattr(task, "atomic", False) or using == aliases()[0]:
        return
    if not settings_of(ShardSettings).rows_follow_jobs:
        raise Unsupported(
            f"{name} is atomic, and the jobs of tenant {tenant!r} are in the database {using!r}: "
            f"the task's writes to {aliases()[0]!r} would be in another transaction than the end "
            "of the job. Use a task that is not atomic, or keep the rows of tenants with their "
            "jobs and set TENANTQUEUE['SHARDS']['ROWS_FOLLOW_JOBS'] = True"
        )


def _check_move(using: str, tenant: str) -> None:
    """Raise TenantMoving for a tenant that moves, or has moved to another database."""
    ((is_moving, is_elsewhere),) = fetch(using, "read_move", {"tenant": tenant})
    if is_moving or is_elsewhere:
        forget_pins()
        raise TenantMoving(tenant)


def _check_transaction(using: str, tenant: str) -> None:
    """Raise Unsupported when the caller's transaction is in another database than the job."""
    if _is_in_transaction(connections[using]):
        return
    for wrapper in connections.all(initialized_only=True):
        if wrapper.alias in aliases() and _is_in_transaction(wrapper):
            raise Unsupported(
                f"the jobs of tenant {tenant!r} are in the database {using!r}, and a transaction "
                f"is open in {wrapper.alias!r}: the job would start before its commit, and stay "
                "after a rollback. Enqueue it in transaction.on_commit(), or open the transaction "
                f"with transaction.atomic(using={using!r})"
            )


def _is_in_transaction(wrapper: BaseDatabaseWrapper) -> bool:
    """Whether a transaction is open that ends before the test does. See in_test_case()."""
    return any(not getattr(block, "_from_testcase", False) for block in wrapper.atomic_blocks)
