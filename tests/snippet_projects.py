"""The project of the reader: what the pages of the documentation take from it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.test import RequestFactory
from django.urls import include, path

FAILING = {"django_tenantqueue.http_job"}
"""Tasks whose jobs may end in `error` here: they call hosts that do not exist."""

SHOP = """
from django_tenantqueue import control, task

@task
def build_report(report_id, **options):
    return {"rows": report_id}

@task
def send_invoice(order_id, **options):
    pass

queue = control.make_queue("acme", "mail")
job = build_report.using(tenant="acme", queue="mail").delay(1)
"""
"""The module shop.tasks before a page begins."""

BEFORE = {
    "howto/failures": """
@task
def charge(order_id):
    pass
""",
}
"""What a page's project has besides."""


def begin(page: str, space: dict[str, Any]) -> None:
    """Fill the module of a page with what its project has."""
    request = RequestFactory().get("/")
    request.user = User.objects.create(username="ann")
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


NOT_ALONE = {"howto/deployment": "CREATE ROLE shop_site; CREATE ROLE shop_worker;"}
"""Statements before those of a page."""


def before_sql(page: str) -> str:
    return NOT_ALONE.get(page, "")
