"""The API against its own OpenAPI document: no 5xx, and no answer that the document does not have.

Schemathesis makes the requests: valid ones, ones with wrong values, and other methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.routing.control import make_routing
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.models import ConcurrentJobMonitor, Job, Session, TenantQueue
from tests.factories import make_job, make_jobs, make_queue

from .conftest import SETTINGS

NEEDS = "routing schedules"
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
)
EXAMPLES = 6
TASK = "tests.testapp.tasks.noop"


@pytest.fixture
def document() -> Iterator[Any]:
    """Return the document. The connection of the test stays open, as with Django's test client."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        with override_settings(ALLOWED_HOSTS=["*"]):
            yield schemathesis.openapi.from_wsgi("/api/openapi.json", get_wsgi_application())
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


@pytest.fixture
def secret() -> str:
    """Fill the tenant with a row of each kind, and return a token that may do everything."""
    queue = make_queue("acme", "default")
    make_jobs(queue, 3)
    make_job(queue, state="success")
    make_job(queue, state="error")
    Session.objects.create(kind="serial", tenant="acme", key="k", gate_key="acme/k")
    ConcurrentJobMonitor.objects.create(
        tenant="acme", name="m", parallel=1, anchor_id=make_job(queue).pk, created_at=timezone.now()
    )
    Schedule.objects.create(tenant="acme", name="s", task=TASK, expression="1h", kind="interval")
    make_routing(TASK, "default", tenant="acme")
    return make_token("fuzzer", tenant="acme", scopes=["read", "submit", "http", "tune"])[1]


def try_all(document: Any, secret: str, examples: int) -> int:
    """Try each operation with some requests; return how many operations there are."""
    ended = Job.objects.finished().first().pk
    ids = {
        "job_id": list(Job.objects.values_list("pk", flat=True)),
        "row_id": [
            Session.objects.get().pk,
            ConcurrentJobMonitor.objects.get().pk,
            Schedule.objects.get().pk,
        ],
        "name": list(TenantQueue.objects.values_list("name", flat=True)),
        "pattern": list(Routing.objects.values_list("pattern", flat=True)),
    }
    count = 0
    for result in document.get_all_operations():
        operation = result.ok()
        count += 1
        tried = 0

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def attempt(case: Any) -> None:
            nonlocal tried
            tried += 1
            for name in case.path_parameters or {}:
                if tried % 2:
                    case.path_parameters[name] = ids[name][tried // 2 % len(ids[name])]
            if isinstance(case.body, dict) and "task" in case.body and tried % 2:
                case.body["task"] = TASK
            if case.query and tried % 4:
                case.query.pop("tenant", None)  # nearly all of them are refused with 403
            if "wait" in case.path:
                case.query = {**(case.query or {}), "seconds": 0}
            if "events" in case.path and tried % 2:
                case.path_parameters["job_id"] = ended  # the stream of another one is endless
            case.call_and_validate(
                checks=CHECKS, headers={"Authorization": f"Bearer {secret}"}, timeout=20
            )

        given(operation.as_strategy())(attempt)()
    return count


@pytest.mark.heavy
@pytest.mark.django_db
def test_every_answer_is_in_the_document_when_much_is_tried(document: Any, secret: str) -> None:
    with override_settings(TENANTQUEUE=SETTINGS):
        try_all(document, secret, 40)


@pytest.mark.django_db
def test_every_answer_is_in_the_document(document: Any, secret: str) -> None:
    with override_settings(TENANTQUEUE=SETTINGS):
        assert try_all(document, secret, EXAMPLES) >= 20
