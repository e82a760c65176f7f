"""Schedules, routings, metrics and the HTTP APIs where jobs are in several databases."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_tenantqueue import control
from django_tenantqueue.conf import database
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import AlertRule
from django_tenantqueue.contrib.alerts.services import tune_alert_rule
from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.models import ApiToken, IdempotencyKey
from django_tenantqueue.contrib.routing.control import make_routing
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.declared import sync_schedules
from django_tenantqueue.contrib.schedules.firing import fire_schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.contrib.schedules.recurrence import Every
from django_tenantqueue.contrib.schedules.services import tune_schedule
from django_tenantqueue.contrib.shards.control import list_pins, pin_tenant
from django_tenantqueue.contrib.shards.setup import set_up
from django_tenantqueue.exceptions import InvalidOption, InvalidState
from django_tenantqueue.models import Change, Job
from django_tenantqueue.testing import run_pending
from tests.contrib.alerts.test_admin import edit
from tests.contrib.shards.conftest import ALIASES, sharded, tenant_of
from tests.testapp.tasks import echo, noop

NEEDS = "alerts api fireworq http prometheus routing schedules"
pytestmark = [pytest.mark.usefixtures("shards"), pytest.mark.urls("tests.contrib.shards.urls")]


def schedules() -> dict[str, list[str | None]]:
    return {
        alias: list(Schedule.objects.using(alias).order_by("pk").values_list("tenant", flat=True))
        for alias in ALIASES
    }


# schedules


@pytest.mark.parametrize("alias", ALIASES)
def test_schedule_is_in_the_database_of_its_tenant_and_fires_there(alias: str):
    tenant = tenant_of(alias)
    hourly = Every(hours=1, catch_up="once")
    row = make_schedule("nightly", noop, hourly, tenant=tenant)
    make_schedule("nightly", noop, Every(hours=1))

    assert schedules() == {"us0": [tenant, ""] if alias == "us0" else [""], "eu1": [tenant]} | (
        {"eu1": []} if alias == "us0" else {}
    )
    assert control.run_now(row).changed == [row.pk]
    with database(alias):
        run_pending()
        fire_schedules(alias, timezone.now() + timedelta(hours=2))
    rows = Job.objects.using(alias).filter(queue__tenant=tenant)
    assert rows.count() == 2
    with pytest.raises(InvalidOption, match="are in the database"):
        tune_schedule(row.pk, tenant=tenant_of(*{*ALIASES} - {alias}), using=alias)


def test_schedule_of_every_tenant_is_made_in_each_database():
    for alias in ALIASES:
        noop.using(tenant=tenant_of(alias)).delay()

    with pytest.raises(InvalidOption, match="give using="):
        make_schedule("all", noop, Every(seconds=60), tenant=None)
    for alias in ALIASES:
        make_schedule("all", noop, Every(seconds=60), tenant=None, using=alias)
        with database(alias):
            fire_schedules(alias, timezone.now() + timedelta(minutes=2))

    assert [Job.objects.using(alias).count() for alias in ALIASES] == [2, 2]


def test_schedule_of_every_tenant_leaves_out_a_tenant_that_is_elsewhere():
    tenant = tenant_of("eu1")
    with override_settings(TENANTQUEUE={"DATABASE": "us0"}):
        noop.using(tenant=tenant).delay()
    noop.using(tenant=tenant_of("us0")).delay()
    schedule = make_schedule("all", noop, Every(seconds=60), tenant=None, using="us0")

    with database("us0"):
        fire_schedules("us0", timezone.now() + timedelta(minutes=2))

    schedule.refresh_from_db()
    assert schedule.last_error == ""
    assert Job.objects.using("us0").count() == 3


def test_declared_schedules_are_in_the_database_of_their_tenants(own_tasks: dict[str, Any]):
    from django_tenantqueue import task

    tenants = ("", tenant_of("eu1"), None)
    for number, tenant in enumerate(tenants):

        @task(name=f"tests.tick{number}", schedule=Every(seconds=60, tenant=tenant))
        def tick() -> None:
            """Do nothing."""

    for alias in ALIASES:
        sync_schedules(alias)

    assert schedules() == {"us0": ["", None], "eu1": [tenants[1], None]}


# rows of tenants


def test_pin_is_refused_for_a_tenant_with_a_rule_in_another_database():
    tenant = tenant_of("us0")
    make_alert_rule("late", "queue_late", log=True, tenant=tenant)
    make_token("one", tenant=tenant)

    with pytest.raises(InvalidState, match="has alert rules in the database 'us0'"):
        pin_tenant(tenant, "eu1")
    AlertRule.objects.using("us0").all().delete()
    pin_tenant(tenant, "eu1")


def test_setup_pins_a_tenant_that_has_a_schedule_alone():
    tenant = tenant_of("eu1")
    with override_settings(TENANTQUEUE={"DATABASE": "us0"}):
        make_schedule("nightly", noop, Every(hours=1), tenant=tenant)

    set_up(lambda text: None)

    assert list_pins() == {tenant: "us0"}


def test_rule_cannot_get_a_tenant_of_another_database(admin_client: Client):
    rule = make_alert_rule("late", "queue_late", log=True, tenant=None, using="us0")

    with pytest.raises(InvalidOption, match="are in the database 'eu1'"):
        tune_alert_rule(rule.pk, tenant=tenant_of("eu1"), using="us0")
    answer = edit(admin_client, rule, tenant_choice="one", tenant=tenant_of("eu1"))

    assert "are in the database “eu1”" in answer.content.decode()
    rule.refresh_from_db()
    assert rule.tenant is None
    edit(admin_client, rule, tenant_choice="one", tenant=tenant_of("us0"))
    rule.refresh_from_db()
    assert rule.tenant == tenant_of("us0")


def test_row_of_a_tenant_is_refused_in_another_database():
    tenant = tenant_of("eu1")
    noop.using(tenant=tenant).delay()

    with pytest.raises(InvalidOption, match="are in the database 'eu1', not in 'us0'"):
        make_routing("x", "default", tenant=tenant, using="us0")
    make_routing(noop.name, "default", tenant=tenant, using="eu1")
    assert noop.using(tenant=tenant).delay()._state.db == "eu1"


# HTTP


def call(client: Client, method: str, path: str, secret: str, **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {secret}", **more.pop("headers", {})}
    given = {"content_type": "application/json", "headers": headers, **more}
    return getattr(client, method)(f"/api/{path}", **given)


@pytest.fixture
def offered(shards: None) -> Iterator[None]:
    values = {**sharded(*ALIASES), "API": {"TASKS": [echo.name]}}
    with override_settings(TENANTQUEUE=values):
        yield


@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize("alias", ALIASES)
def test_api_acts_in_the_database_of_the_tenant(client: Client, alias: str):
    tenant = tenant_of(alias)
    _, secret = make_token("one", tenant=tenant)
    _, every = make_token("all", tenant=None)
    body, key = {"task": echo.name, "args": [1]}, {"Idempotency-Key": "k1"}

    made = [call(client, "post", "jobs", secret, data=body, headers=key).json() for _ in "ab"]
    batch = call(client, "post", f"jobs/batch?tenant={tenant}", every, data={"jobs": [body] * 2})
    listed = call(client, "get", "jobs", secret).json()["items"]
    cancelled = call(client, "post", f"jobs/{made[0]['id']}/cancel", secret).json()

    assert made[0]["id"] == made[1]["id"]
    assert len(batch.json()["ids"]) == 2
    assert len(listed) == Job.objects.using(alias).count() == 3
    assert cancelled["state"] == "cancelled"
    assert call(client, "get", "queues", secret).json()["items"][0]["name"] == "default"
    assert ApiToken.objects.using("us0").count() == 2
    assert IdempotencyKey.objects.using(alias).count() == 1
    assert Job.objects.db == "us0", "the request is over"


def cancel(job_id: int) -> None:
    """Cancel a job in a thread of its own."""
    try:
        control.cancel(job_id)
    finally:
        connections.close_all()


@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("path", ["wait?seconds=5", "events"])
def test_api_waits_in_the_database_of_the_tenant(client: Client, alias: str, path: str):
    _, secret = make_token("one", tenant=tenant_of(alias))
    job = echo.using(tenant=tenant_of(alias)).delay("done")
    timer = threading.Timer(0.3, cancel, [job.pk])
    timer.start()

    answer = call(client, "get", f"jobs/{job.pk}/{path}", secret)
    text = (b"".join(answer.streaming_content) if path == "events" else answer.content).decode()
    timer.join()
    for thread in threading.enumerate():  # its connections are closed at its end
        if thread.name == "tenantqueue-waits":
            thread.join()

    assert '"state": "cancelled"' in text, text
    assert text.startswith("event: progress") == (path == "events")


@pytest.mark.usefixtures("offered")
def test_tokens_of_an_erased_tenant_are_deleted_in_the_first_database(client: Client):
    tenant = tenant_of("eu1")
    _, secret = make_token("one", tenant=tenant)
    make_token("other", tenant=tenant_of("us0"))
    key = {"Idempotency-Key": "k1"}
    call(client, "post", "jobs", secret, data={"task": echo.name, "args": [1]}, headers=key)
    assert Change.objects.using("us0").filter(tenant=tenant).exists()

    control.erase_tenant(tenant)

    assert not Change.objects.using("us0").filter(tenant=tenant).exists()

    assert ApiToken.objects.using("us0").get().name == "other"
    assert not IdempotencyKey.objects.using("eu1").exists()
    assert not Job.objects.using("eu1").exists()


def test_api_says_that_a_database_is_down(down: str, client: Client):
    values = {**sharded(*ALIASES, down), "API": {"TASKS": [echo.name]}}
    with override_settings(TENANTQUEUE=values):
        _, secret = make_token("one", tenant=tenant_of(down))
        answers = [
            call(client, "post", "jobs", secret, data={"task": echo.name, "args": [1]}),
            call(client, "get", f"jobs/{2**40 + 2}", secret),
            call(client, "get", "queues", secret),
        ]

    assert [answer.status_code for answer in answers] == [503] * 3
    assert {answer["Content-Type"] for answer in answers} == {"application/problem+json"}
    assert answers[0]["Retry-After"] == "5"


@pytest.mark.usefixtures("offered")
def test_token_is_made_in_the_first_database_alone():
    with pytest.raises(CommandError, match="all tokens are in the database 'us0'"):
        call_command("tenantqueue", "token", "create", "one", "--tenant=a", "--database=eu1")


@pytest.mark.usefixtures("offered")
def test_token_of_one_tenant_does_not_read_jobs_of_another_database(client: Client):
    _, secret = make_token("one", tenant=tenant_of("us0"))
    job = echo.using(tenant=tenant_of("eu1")).delay(1)

    assert call(client, "get", f"jobs/{job.pk}", secret).status_code == 404


def test_request_to_fireworq_is_put_into_the_database_of_the_tenant(client: Client):
    values = {**sharded(*ALIASES), "FIREWORQ": {"TENANT_WITHOUT_TOKEN": tenant_of("eu1")}}
    with override_settings(TENANTQUEUE=values):
        answer = client.post(
            "/fireworq/job/echo", {"url": "http://localhost:1/"}, content_type="application/json"
        )

    assert answer.status_code == 200, answer.content
    assert [Job.objects.using(alias).count() for alias in ALIASES] == [0, 1]
    assert answer.json()["id"] == Job.objects.using("eu1").get().pk


@override_settings(
    MIDDLEWARE=[
        *settings.MIDDLEWARE,
        "django_tenantqueue.contrib.shards.middleware.ShardMiddleware",
    ]
)
def test_tokens_are_in_the_first_database_whatever_the_admin_shows(admin_client: Client):
    admin_client.get("/admin/", {"shard": "eu1"})
    values = {
        "name": "one",
        "tenant": tenant_of("eu1"),
        "scopes": ["read"],
        "min_priority": 0,
        "max_priority": 400,
    }

    answer = admin_client.post(reverse("admin:tenantqueue_api_apitoken_add"), values)

    assert ApiToken.objects.using("us0").count() == 1, answer.content.decode()
    assert not ApiToken.objects.using("eu1").exists()
    page = reverse("admin:tenantqueue_api_apitoken_changelist")
    assert admin_client.get(page, {"shard": "eu1"}).status_code == 200


# metrics


def test_metrics_are_read_from_one_database(down: str, client: Client):
    noop.using(tenant=tenant_of("eu1")).delay()
    values = {**sharded(*ALIASES, down), "METRICS": {"ACCESS": "open"}}

    with override_settings(TENANTQUEUE=values):
        answers = [
            client.get(reverse("tenantqueue:shard_metrics", args=[alias]))
            for alias in (*ALIASES, down, "mars")
        ]

    assert [answer.status_code for answer in answers] == [200, 200, 503, 404]
    texts = [answer.content.decode() for answer in answers]
    assert [f'tenant="{tenant_of("eu1")}"' in text for text in texts[:2]] == [False, True]
