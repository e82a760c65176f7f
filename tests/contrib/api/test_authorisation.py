"""Who may do what, read from the OpenAPI document: each operation with each wrong token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_tenantqueue import bulk
from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.models import ApiToken, IdempotencyKey
from django_tenantqueue.contrib.api.tokens import revoke_tokens
from django_tenantqueue.contrib.api.urls import api as documented
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.models import Change, ConcurrentJobMonitor, Job, Session, TenantQueue
from django_tenantqueue.operations import control
from tests.factories import make_job, make_queue

from .conftest import EVERY, ApiClient

NEEDS = "routing schedules"
pytestmark = pytest.mark.django_db
TASK = "tests.testapp.tasks.noop"
BODIES = {
    "submit_job": {"task": TASK},
    "submit_batch": {"jobs": [{"task": TASK}]},
    "tune_job": {"priority": 7},
    "tune_queue": {"paused": True},
    "tune_session": {"paused": True},
    "tune_monitor": {"paused": True},
    "tune_schedule": {"enabled": False},
    "set_routing": {"queue": "default"},
}


@dataclass(frozen=True)
class Operation:
    """An operation of the document, about a row of the tenant acme."""

    name: str
    method: str
    path: str
    scope: str

    def ask(self, client: ApiClient, query: str = "") -> Any:
        wait = "seconds=0" if self.name == "wait_for_job" else ""
        path = f"{self.path}?{query}&{wait}"
        return client.send(self.method, path, BODIES.get(self.name))


DOCUMENT = documented.get_openapi_schema(path_prefix="")
OPERATIONS = [
    (each["operationId"], method.upper(), path, each["x-scope"])
    for path, methods in DOCUMENT["paths"].items()
    for method, each in methods.items()
]
NAMES = [name for name, *_ in OPERATIONS]
Of = Callable[[str], Operation]


@pytest.fixture
def of() -> Of:
    """Make a row of each kind of the tenant acme; return what gives an operation by its name."""
    queue = make_queue("acme", "default")
    states = {"cancel_job": "ready", "tune_job": "ready", "follow_job": "success"}
    session = Session.objects.create(kind="serial", tenant="acme", key="k", gate_key="acme/k")
    monitor = ConcurrentJobMonitor.objects.create(
        tenant="acme", name="m", parallel=1, anchor_id=make_job(queue).pk, created_at=timezone.now()
    )
    schedule = Schedule.objects.create(
        tenant="acme", name="s", task=TASK, expression="1h", kind="interval"
    )
    Routing.objects.create(tenant="acme", pattern="x", queue="default")
    rows = {"sessions": session.pk, "monitors": monitor.pk, "schedules": schedule.pk}

    def make(name: str) -> Operation:
        _, method, path, scope = next(each for each in OPERATIONS if each[0] == name)
        if "{job_id}" in path:
            job = make_job(queue, state=states.get(name, "error"))
            path = path.replace("{job_id}", str(job.pk))
        for kind, pk in rows.items():
            path = path.replace(f"{kind}/{{row_id}}", f"{kind}/{pk}")
        path = path.replace("{name}", "default").replace("{pattern}", "x")
        return Operation(name, method, path, scope)

    return make


def everything() -> list[Any]:
    """Return all rows that a request could change; when a token was used last is left out."""
    tuned = (TenantQueue, Session, ConcurrentJobMonitor, Schedule, Routing)
    models = (Job, *tuned, IdempotencyKey, Change)
    rows: list[Any] = [list(model.objects.order_by("pk").values()) for model in models]
    return [*rows, list(ApiToken.objects.order_by("pk").values("pk", "revoked_at"))]


@pytest.fixture
def unchanged() -> Iterator[Callable[[], None]]:
    """Return a function that remembers all rows; at the end they must be the same."""
    before: list[Any] = []
    yield lambda: before.append(everything())
    assert before
    assert everything() == before[0]


def is_problem(response: Any, status: int) -> bool:
    return (
        response.status_code == status
        and response["Content-Type"] == "application/problem+json"
        and response.json()["status"] == status
    )


Unchanged = Callable[[], None]


def test_document_has_all_operations() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_right_token_is_let_through(name: str, of: Of, api: ApiClient) -> None:
    assert of(name).ask(api).status_code in (200, 201)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_token_changes_nothing(
    name: str, of: Of, unchanged: Unchanged, api_of: Callable[..., ApiClient]
) -> None:
    old, expired = make_token("old", tenant="acme", scopes=EVERY)
    ApiToken.objects.filter(pk=old.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    row, revoked = make_token("lost", tenant="acme", scopes=EVERY)
    revoke_tokens(row.pk)
    operation = of(name)
    unscoped = api_of("acme", *(scope for scope in EVERY if scope != operation.scope))
    foreign = api_of("zebra")
    without, nonsense, basic = ApiClient(), ApiClient("tq_wrong"), ApiClient()
    basic.headers["Authorization"] = "Basic dXNlcjpwYXNz"
    unchanged()

    for client in (without, nonsense, basic, ApiClient(expired), ApiClient(revoked)):
        response = operation.ask(client)
        assert is_problem(response, 401)
        assert response["WWW-Authenticate"].startswith("Bearer")
    assert is_problem(operation.ask(unscoped), 403)
    assert is_problem(operation.ask(foreign, "tenant=acme"), 403)
    if not name.startswith(("list_", "submit_", "set_")):
        assert is_problem(operation.ask(foreign), 404)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("list_")])
def test_lists_have_no_row_of_another_tenant(
    name: str, of: Of, api_of: Callable[..., ApiClient]
) -> None:
    operation = of(name)
    response = operation.ask(api_of("zebra"))

    assert response.status_code == 200
    if name != "list_tasks":
        assert response.json() == {"items": [], "next": None}


@pytest.mark.parametrize("name", ["submit_job", "submit_batch"])
def test_jobs_go_to_the_tenant_of_the_token(
    name: str, of: Of, api_of: Callable[..., ApiClient]
) -> None:
    operation = of(name)
    before = Job.objects.for_tenant("acme").count()

    assert operation.ask(api_of("zebra")).status_code == 201

    assert Job.objects.for_tenant("zebra").count() == 1
    assert Job.objects.for_tenant("acme").count() == before


@pytest.mark.parametrize("name", NAMES)
def test_token_for_every_tenant_names_one_in_each_request(
    name: str, of: Of, api_of: Callable[..., ApiClient]
) -> None:
    operation = of(name)
    client = api_of(None)

    assert is_problem(operation.ask(client), 422)
    assert operation.ask(client, "tenant=acme").status_code in (200, 201)


def test_http_jobs_need_a_scope_of_their_own(
    api_of: Callable[..., ApiClient], unchanged: Unchanged
) -> None:
    job = {"task": "django_tenantqueue.http.http_job", "args": ["https://example.com/"]}
    client = api_of("acme", "submit", "read")
    unchanged()

    assert is_problem(client.post("/jobs", job), 403)
    assert is_problem(client.post("/jobs/batch", {"jobs": [job]}), 403)


def test_http_jobs_are_taken_from_a_token_with_their_scope(
    api_of: Callable[..., ApiClient],
) -> None:
    job = {"task": "django_tenantqueue.http.http_job", "args": ["https://example.com/"]}

    assert api_of("acme", "submit", "http").post("/jobs", job).status_code == 201


def test_jobs_of_the_package_itself_are_not_there(api_of: Callable[..., ApiClient]) -> None:
    make_job(make_queue("globex"), state="error")
    job = bulk.start("retry", {})  # of one who sees all tenants: it lives in no tenant
    control.cancel([job.pk])
    api = api_of(None)

    answers = [
        api.get(f"/jobs/{job.pk}?tenant="),
        api.get(f"/jobs/{job.pk}/wait?tenant="),
        api.post(f"/jobs/{job.pk}/retry?tenant="),
        api.post(f"/jobs/{job.pk}/cancel?tenant="),
        api.patch(f"/jobs/{job.pk}?tenant=", {"priority": 1}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 5
    assert api.get("/jobs?tenant=").json()["items"] == []
    assert job.refresh().state == "cancelled"
