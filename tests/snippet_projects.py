"""The project of the reader: what the pages of the documentation take from it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.test import RequestFactory
from django.urls import include, path

FAILING = {"django_tenantqueue.http.http_job", "django_tenantqueue.http.post_end"}
"""Tasks whose jobs may end in `error` here: they call hosts that do not exist."""

NOT_INSTALLED = ("sentry_sdk", "django_tenants", "django_tenants.utils")
"""Packages that pages import, and that the tests have no other use for."""

SHOP = """
from django_tenantqueue import control, task

@task
def build_report(report_id, **options):
    return {"rows": report_id}

@task
def mail_report(report_id):
    pass

@task
def send_invoice(order_id, **options):
    pass

queue = control.make_queue("acme", "mail")
job = mail_report.using(tenant="acme", queue="mail").delay(1)
"""
"""The module `shop.tasks` before a page begins."""

REPORT = """
from django.db import models

class Report(models.Model):
    title = models.CharField(max_length=100)
"""

BEFORE = {
    "howto/failures": """
@task
def charge(order_id):
    pass
""",
    "howto/progress": REPORT,
    "howto/routing": """
for name in ("heavy", "night", "slow"):
    control.make_queue("", name)
    control.make_queue("acme", name)
""",
    "howto/transactions": REPORT,
}
"""What a page's project has besides."""

SETTINGS = {
    "howto/enqueue-methods": {
        "CALLABLES": ["django.core.mail.send_mail", "django.contrib.auth.models.User.email_*"]
    }
}
"""What the settings of a page's project have in TENANTQUEUE."""

TYPES_ONLY = {
    ("howto/shards", 3),
    ("howto/shards", 4),
    ("howto/shards", 7),
    ("howto/type-checking", 2),
}
"""Snippets that only a type checker reads here: their option belongs to an app of the reader, or
they need a second database."""

BEFORE_SQL = {
    "explanation/claim": "DROP INDEX tenantqueue_job_ready",
    "howto/deployment": "CREATE ROLE shop_owner; CREATE ROLE shop_site; CREATE ROLE shop_worker",
}
"""Statements before those of a page. All are rolled back."""


def begin(page: str, space: dict[str, Any]) -> None:
    """Fill the module of a page with what its project has."""
    request = RequestFactory().get("/")
    request.user = User.objects.create(username="reader")
    request.session = SessionStore()
    space.update(
        INSTALLED_APPS=[],
        MIDDLEWARE=[],
        urlpatterns=[],
        include=include,
        path=path,
        request=request,
        user=request.user,
    )
    exec(SHOP, space)
    exec(BEFORE.get(page, ""), space)
