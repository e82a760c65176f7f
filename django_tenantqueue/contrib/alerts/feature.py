"""What alerts adds to the core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.models import Model
from django.http import HttpRequest

from ...features import Feature
from ...models import Alert, AlertRule, Change


class Alerts(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        from ...alerts import delivery  # noqa: F401 - workers must know its task

    def home_problems(self, request: HttpRequest) -> Iterable[Mapping[str, str]]:
        """Yield that alerts are open."""
        from ...admin.open_alerts import open_alerts  # a worker may have no admin

        return open_alerts(request)

    def audited(self) -> Mapping[str, type[Model]]:
        """Return the model of alert rules."""
        return {Change.Kind.ALERT_RULE: AlertRule}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        """Return the tables of alerts and of their rules."""
        return {Alert: "tenant", AlertRule: "tenant"}

    def forget_tenant(self, using: str, tenant: str) -> None:
        """Remove the errors of rules of no tenant, which may quote a job's values."""
        rows = AlertRule.objects.using(using).filter(tenant="")
        rows.exclude(last_error="").update(last_error="")
