"""Connects alerts to the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from django.db.models import Model, Q
from django.http import HttpRequest

from ...batch_sizes import BATCH
from ...conf import settings_of
from ...features import Condition, Duty, Feature
from ...when_due import WhenDue
from . import services
from .models import Alert, AlertRule
from .settings import AlertSettings
from .watches import OWN

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand


class Alerts(Feature):
    """See features.py for when each method is called."""

    settings = AlertSettings

    def ready(self) -> None:
        from . import delivery  # noqa: F401 - workers must know its task

    def queue_names(self) -> Iterable[str]:
        return [settings_of(AlertSettings).queue]

    def duties(self) -> Iterable[Duty]:
        from . import check  # it declares a task, for which features are asked

        due = WhenDue(check.seconds_to_next_check, check.check_rules)
        yield Duty("check_alerts", due.step, 5.0, pause_after=due.pause_after)
        yield Duty("prune_alerts", check.prune_alerts, 600.0, BATCH)

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        from .management.subcommands.alerts import MuteRule, SendTestMessage, UnmuteRule

        return {
            "alerts mute": MuteRule,
            "alerts unmute": UnmuteRule,
            "alerts test": SendTestMessage,
        }

    def conditions(self) -> Iterable[Condition]:
        return OWN

    def home_problems(self, request: HttpRequest) -> Iterable[Mapping[str, str]]:
        from .visible_alerts import open_alerts  # a worker may have no admin

        return open_alerts(request)

    def lists(self) -> Mapping[str, type[Model]]:
        return {"alerts": Alert}

    def operations(self) -> Mapping[type[Model], Mapping[str, Callable[..., Collection[int]]]]:
        return {
            AlertRule: {
                "pause": services.disable_alert_rules,
                "resume": services.enable_alert_rules,
                "tune": services.tune_alert_rule,
                "mute": services.mute_alert_rules,
                "unmute": services.unmute_alert_rules,
                "delete": services.delete_alert_rules,
            }
        }

    def audited(self) -> Mapping[str, type[Model]]:
        return {"alert_rule": AlertRule}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {Alert: "tenant", AlertRule: "tenant"}

    def forget_tenant(self, using: str, tenant: str) -> None:
        """Remove errors and reasons of rules of every tenant or none: they may name the tenant."""
        rows = AlertRule.objects.using(using).filter(Q(tenant=None) | Q(tenant=""))
        rows.filter(mute_reason__contains=tenant).update(mute_reason="")
        rows.exclude(last_error="").update(last_error="")
