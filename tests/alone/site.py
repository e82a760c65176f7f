"""Use a site with some of the optional apps, from an empty database on; print what it has.

It is a program: one process has one list of installed apps.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import fields
from io import StringIO
from typing import Any

import django

if __name__ == "__main__":
    django.setup()

from django.contrib.auth.models import Permission, User
from django.core.management import call_command, get_commands
from django.db import connection
from django.test import Client
from django.urls import reverse

from django_tenantqueue.conf import settings_kinds
from django_tenantqueue.models import ConcurrentJobMonitor, Job, TenantQueue
from django_tenantqueue.operations import history
from django_tenantqueue.testing import run_commit_hooks
from tests.site import models_of_ours
from tests.testapp.tasks import noop
from tests.walk import Walk, listed

TABLES = """
    SELECT c.relname FROM pg_class c
    WHERE c.relname LIKE 'tenantqueue\\_%' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    ORDER BY c.relname
"""
INDEXES = "SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass"


def first_value(sql: str, *values: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.fetchone()[0])


def tables() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        return [name for (name,) in cursor.fetchall()]


def has() -> dict[str, Any]:
    month = history.list_leaves("default")[0].name
    return {
        "tables": tables(),
        "hot_indexes": first_value(INDEXES, "tenantqueue_job_hot"),
        "month_indexes": first_value(INDEXES, month),
        "lists": sorted(str(model._meta.verbose_name) for model in listed()),
        "settings": sum(len(fields(kind)) for kind in settings_kinds()),
        "commands": sorted(
            name for name, app in get_commands().items() if app.startswith("django_tenantqueue")
        ),
    }


def fill() -> None:
    """Make jobs of each kind, and let a worker run what it can."""
    job = noop.using(tenant="acme", on_success=[noop.call()]).delay()
    noop.using(tenant="acme", session="payroll").delay()
    noop.using(tenant="acme", limit_user="eve", run_at=3600).delay()
    ConcurrentJobMonitor.objects.start(
        "letters", [noop.call() for _ in range(3)], tenant="acme", parallel=2
    )
    run_commit_hooks("default")
    call_command("runworker", "--until-empty", "--threads=1", stdout=StringIO(), stderr=StringIO())
    assert job.refresh().state == "success", job.state
    assert Job.objects.filter(state="success").count() >= 5
    TenantQueue.objects.create(tenant="acme", name="paused", paused=True)


def ask_pages() -> Iterator[str]:
    """Yield what failed on the pages of the admin and for users."""
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    for user in (User.objects.create_superuser("admin"), viewer):
        walk = Walk(user)
        walk.walk(asks=user.is_superuser)
        yield from map(str, walk.failed)
        assert walk.seen > 40
    job = Job.objects.filter(state="success").first()
    assert job is not None
    client = Client()
    for address in (job.status_url, reverse("tenantqueue:statuses")):
        if client.get(address).status_code >= 500:
            yield address


def main() -> None:
    """Migrate, check, work, look, and take the tables away again."""
    call_command("migrate", verbosity=0)
    call_command("check", databases=["default"], fail_level="WARNING", stdout=StringIO())
    call_command("makemigrations", check_changes=True, dry_run=True, stdout=StringIO())
    found = has()
    fill()
    failed = list(ask_pages())
    for subcommand in ("status", "apply-priority-scope"):
        call_command("tenantqueue", subcommand, stdout=StringIO())
    call_command("tenantqueue", "erase", "--tenant=acme", "--no-input", stdout=StringIO())
    run_commit_hooks("default")
    for label in sorted({model._meta.app_label for model in models_of_ours()}, reverse=True):
        call_command("migrate", label, "zero", verbosity=0)
    json.dump({**found, "failed": failed, "left": tables()}, sys.stdout)


if __name__ == "__main__":
    main()
