"""Connects retention rules to the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Model

from ...features import Duty, Feature
from .models import RetentionRule
from .operations import delete_rules, tune_rule
from .pruning import Pruner
from .rules import Rules

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand


class Retention(Feature):
    """See features.py for when each method is called."""

    def duties(self) -> Iterable[Duty]:
        pruner = Pruner()
        yield Duty("prune_history", pruner.step, 60.0, pause_after=pruner.rest)

    def history_kept_from(
        self, using: str, now: datetime, before: datetime | None
    ) -> datetime | None:
        return Rules.read(using, now).forgotten

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        from .management.subcommands.prune import Prune

        return {"prune": Prune}

    def operations(self) -> Mapping[type[Model], Mapping[str, Callable[..., Collection[int]]]]:
        return {RetentionRule: {"tune": tune_rule, "delete": delete_rules}}

    def audited(self) -> Mapping[str, type[Model]]:
        return {"retention": RetentionRule}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {RetentionRule: "tenant"}
