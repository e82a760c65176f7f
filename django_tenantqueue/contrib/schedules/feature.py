"""What schedules adds to the core."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.db.models import Model

from ...features import Feature, Problem
from ...models import Change, Schedule
from ...status.schedules import problems_of_schedules, read_troubles


class Schedules(Feature):
    """See features.py for when each method is called."""

    def problems(self, using: str, tenants: Collection[str] | None) -> Iterable[Problem]:
        """Yield that schedules are late or failing."""
        return problems_of_schedules(read_troubles(using, tenants))

    def lists(self) -> Mapping[str, type[Model]]:
        """Return the list of schedules."""
        return {"schedules": Schedule}

    def audited(self) -> Mapping[str, type[Model]]:
        """Return the model of schedules."""
        return {Change.Kind.SCHEDULE: Schedule}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        """Return the table of schedules."""
        return {Schedule: "tenant"}

    def close_tenant(self, using: str, tenant: str) -> None:
        """Disable the schedules of a tenant."""
        Schedule.objects.using(using).filter(tenant=tenant).update(enabled=False)

    def forget_tenant(self, using: str, tenant: str) -> None:
        """Remove the errors of schedules of no tenant, which may quote a job's values."""
        rows = Schedule.objects.using(using).filter(tenant="")
        rows.exclude(last_error="").update(last_error="")
