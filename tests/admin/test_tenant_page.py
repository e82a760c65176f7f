"""The page of a tenant."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.admin.conftest import text_of
from django_tenantqueue.admin.links import tenant_url, task_url
from tests.admin.test_visible_tenants import fill
NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db

def test_x(admin_client):
    fill("acme")
    with CaptureQueriesContext(connection, ) as c:
        r = admin_client.get(tenant_url("acme"))
    print(len(c))
    for q in c.captured_queries: print(" ".join(q["sql"].split())[:150])
    print(text_of(r))
    open("/tmp/e1/tenant.html","w").write(r.content.decode())
    with CaptureQueriesContext(connection, ) as c:
        r = admin_client.get(task_url("acme.failing"))
    print(len(c))
    for q in c.captured_queries: print(" ".join(q["sql"].split())[:150])
    print(text_of(r))
    assert 0
