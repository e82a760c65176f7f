"""The page of a tenant."""

from __future__ import annotations

import psycopg
import pytest

from django_tenantqueue.admin.links import task_url, tenant_url
from tests.admin.test_visible_tenants import fill

NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db


def test_x(admin_client, monkeypatch):
    fill("acme")
    n = []
    old = psycopg.Cursor.execute

    def ex(self, q, *a, **k):
        n.append(str(q))
        return old(self, q, *a, **k)

    monkeypatch.setattr(psycopg.Cursor, "execute", ex)
    for url in (
        "/admin/tenantqueue/",
        tenant_url("acme"),
        task_url("acme.failing"),
        task_url("acme.failing", tenant="acme"),
    ):
        admin_client.get(url)
        n.clear()
        r = admin_client.get(url)
        real = [q for q in n if "SAVEPOINT" not in q]
        print(url, len(n), len(real))
        for q in real:
            print("   ", " ".join(q.split())[:110])
    assert 0
