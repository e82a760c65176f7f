"""What deliveries add to the queue."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from django.utils import timezone
from django.utils.html import format_html

from django_tenantqueue.admin.visible import may, only_visible
from django_tenantqueue.conf import settings_of
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.features import Condition, Duty, Feature, Severity
from django_tenantqueue.settings import setting

from .models import Delivery

BATCH = 500


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Keys of TENANTQUEUE["DELIVERIES"]."""

    group: ClassVar[str] = "DELIVERIES"

    patience: float = setting(600.0, least=0)
    """Time after which a delivery is late."""


def late(using, tenants=None):
    """Return the deliveries that are late, of some tenants or of all (None)."""
    patience = timedelta(seconds=settings_of(DeliverySettings).patience)
    rows = Delivery.objects.using(using).filter(due_at__lt=timezone.now() - patience)
    return rows if tenants is None else rows.filter(tenant__in=tenants)


def find_late(look):
    """Yield the values of the condition's sentence."""
    names = [str(row) for row in late(look.using, look.tenants)[:50]]
    if names:
        yield {"names": names}


def remind(using):
    """Note reminders of late deliveries, at most BATCH; return how many."""
    due = late(using).filter(reminded_at=None).values("pk")[:BATCH]
    return Delivery.objects.using(using).filter(pk__in=due).update(reminded_at=timezone.now())


def read_carrier(task, value):
    """Return the carrier of a task."""
    if value not in ("bike", "van"):
        raise InvalidOption(f"carrier={value!r} of {task.name}: it must be 'bike' or 'van'")
    return value


class Deliveries(Feature):
    """See features.py for when each method is called."""

    settings = DeliverySettings

    def task_options(self):
        return {"carrier": read_carrier}

    def duties(self):
        yield Duty("remind_deliveries", remind, interval=60.0, full_step=BATCH)

    def conditions(self):
        yield Condition(
            "delivery_late",
            Severity.PEOPLE,
            title="late delivery",
            fleet="late deliveries: %(names)s",
            remedy="Send another van.",
            where="deliveries",
            find=find_late,
            of_tenants=True,
        )

    def lists(self):
        return {"deliveries": Delivery}

    def admin_panels(self, request):
        if may(request, "view", Delivery):
            rows = only_visible(request, Delivery.objects.all(), "tenant")
            yield "Deliveries", format_html("<p>{} on their way.</p>", rows.count())

    def job_facts(self, request, job):
        if may(request, "view", Delivery):
            for row in Delivery.objects.filter(job_id=job.pk):
                yield "delivery due", row.due_at

    def tenant_tables(self):
        return {Delivery: "tenant"}
