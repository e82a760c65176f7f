"""Use each thing that the app adds, from an empty database on; print what came of it."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from io import StringIO
from typing import Any

import django

if __name__ == "__main__":
    django.setup()

from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_tenantqueue import task
from django_tenantqueue.contrib.alerts.check import check_rules
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import Duty
from django_tenantqueue.status.fleet_report import read_report
from django_tenantqueue.testing import run_commit_hooks
from tests.deliveries.models import Delivery
from tests.testapp.tasks import noop


def refused() -> str:
    """Return what is said of a wrong option."""
    try:
        task(carrier="plane", name="tests.by_plane")(lambda: None)
    except InvalidOption as error:
        return str(error)
    return ""


def visible_tenants(user: User) -> list[str] | None:
    """Return the tenants of the limited user, which has none of the deliveries."""
    return ["globex"] if user.username == "limited" else None


def page(user: User, address: str) -> str:
    client = Client()
    client.force_login(user)
    return client.get(address).content.decode()


def use() -> dict[str, Any]:
    """Return what came of each thing."""
    job = noop.using(tenant="acme").delay()
    late = Delivery.objects.create(
        tenant="acme", job_id=job.pk, due_at=timezone.now() - timedelta(hours=1)
    )
    problems = {p.code: p for p in read_report("default", jobs=0).problems}
    make_alert_rule("late", "delivery_late", tenant="acme", log=True)
    check_rules("default")
    alerts = list(Alert.objects.values_list("label", flat=True))
    admin = User.objects.create_superuser("admin")
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_tenantqueue"))
    limited = User.objects.create_user("limited", is_staff=True)
    limited.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    home = reverse("admin:app_list", args=["tenantqueue"])
    seen = page(admin, home)
    job_page = reverse("admin:tenantqueue_job_change", args=[job.pk])
    facts = page(admin, job_page)
    viewer.user_permissions.add(Permission.objects.get(codename="view_job"))
    run_commit_hooks("default")
    call_command("runworker", "--until-empty", "--threads=1", stdout=StringIO(), stderr=StringIO())
    late.refresh_from_db()
    call_command("tenantqueue", "erase", "--tenant=acme", "--no-input", stdout=StringIO())
    return {
        "carrier": task(carrier="van", name="tests.by_van")(lambda: None).extra,
        "refused": refused(),
        "problem": problems["delivery_late"].text,
        "remedy": problems["delivery_late"].remedy,
        "alerts": alerts,
        "linked": reverse("admin:tenantqueue_deliveries_delivery_changelist") in seen,
        "panel": "1 on their way." in seen,
        "panel_of_viewer": "on their way" in page(viewer, home),
        "panel_of_limited": "0 on their way." in page(limited, home),
        "fact": "delivery due" in facts,
        "fact_of_viewer": "delivery due" in page(viewer, job_page),
        "reminded": late.reminded_at is not None,
        "duty": Duty.objects.filter(name="remind_deliveries").exists(),
        "left": Delivery.objects.count(),
    }


def main() -> None:
    """Migrate, check and use."""
    call_command("migrate", verbosity=0)
    call_command("check", databases=["default"], fail_level="WARNING", stdout=StringIO())
    call_command("makemigrations", check_changes=True, dry_run=True, stdout=StringIO())
    json.dump(use(), sys.stdout)


if __name__ == "__main__":
    main()
