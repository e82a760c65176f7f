"""Commands, metrics, checks and the admin where jobs are in several databases."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client, override_settings
from django.urls import reverse

from django_tenantqueue import checks
from django_tenantqueue.conf import database
from django_tenantqueue.contrib.shards.checks import check_set_up, check_shards
from django_tenantqueue.contrib.shards.control import list_pins, pin_tenant
from django_tenantqueue.contrib.shards.models import Shard, ShardPin
from django_tenantqueue.contrib.shards.routes import forget_pins
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.operations.erasure import tables
from django_tenantqueue.testing import run_pending
from tests.contrib.shards.conftest import ALIASES, sharded, tenant_of
from tests.databases import SQLITE, other_database
from tests.testapp.tasks import echo, noop

MIDDLEWARE = "django_tenantqueue.contrib.shards.middleware.ShardMiddleware"


def run(*args: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command("tenantqueue", *map(str, args), stdout=out, **options)
    return out.getvalue()


# commands


@pytest.mark.usefixtures("shards")
def test_status_is_that_of_each_database():
    noop.using(tenant=tenant_of("eu1")).delay()

    text = run("status")
    found = json.loads(run("status", "--format=json"))["databases"]

    assert [line for line in text.splitlines() if line.startswith("database ")] == [
        "database us0",
        "database eu1",
    ]
    assert [found[alias]["need"]["startable"] for alias in ALIASES] == [0, 1]
    assert json.loads(run("status", "--format=json", "--database=eu1"))["need"]["startable"] == 1


def test_status_skips_a_database_that_is_down_and_says_so(down: str):
    out = io.StringIO()

    with pytest.raises(CommandError, match="the jobs' database 'ap2' cannot be used"):
        call_command("tenantqueue", "status", stdout=out)
    assert "database eu1\n" in out.getvalue()
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("tenantqueue", "status", "--format=json", stdout=out)
    assert list(json.loads(out.getvalue())["databases"]) == [*ALIASES]
    assert run("shards", "list").splitlines()[2] == "2  ap2: cannot be used"


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("alias", ALIASES)
def test_commands_find_the_database_of_a_tenant_and_of_an_id(alias: str):
    tenant = tenant_of(alias)
    job = noop.using(tenant=tenant).delay()

    assert f"#{job.pk}" in run("explain", job.pk)
    assert run("pause", f"--tenant={tenant}") == f"{tenant} / default: paused\n"
    assert run("export", f"--tenant={tenant}").count("\n") == 1
    assert run("cancel", job.pk) == f"#{job.pk}: cancelled\n"
    run("bulk", "retry", f"--tenant={tenant}")
    assert Job.objects.using(alias).filter(task__startswith="django_tenantqueue").count() == 1
    assert Change.objects.using(alias).filter(source="command").exists()


@pytest.mark.usefixtures("shards")
def test_commands_about_every_tenant_need_a_database():
    for alias in ALIASES:
        noop.using(tenant=tenant_of(alias)).delay()

    for args in (["pause", "--queue=default"], ["bulk", "cancel", "--all"]):
        with pytest.raises(CommandError, match="us0, eu1: give --database"):
            run(*args)
    run("pause", "--queue=default", "--database=eu1")
    run("bulk", "cancel", "--all", "--database=eu1")
    with database("eu1"):
        run_pending()

    assert TenantQueue.objects.using("eu1").get(name="default").paused
    assert not TenantQueue.objects.using("us0").get(name="default").paused
    assert [Job.objects.using(alias).get(task=noop.name).state for alias in ALIASES] == [
        "ready",
        "cancelled",
    ]


@pytest.mark.usefixtures("shards")
def test_erasing_a_tenant_leaves_the_other_databases():
    names = [tenant_of("us0"), tenant_of("us0", 1)]
    pin_tenant(names[1], "eu1")
    for tenant in names:
        noop.using(tenant=tenant).delay()

    run("erase", f"--tenant={names[1]}", "--no-input")

    assert [Job.objects.using(alias).count() for alias in ALIASES] == [1, 0]
    assert run("shards", "find", names[1]) == "eu1\n", "the erasure can be repeated"
    run("shards", "unpin", names[1])
    assert not any(ShardPin.objects.using(alias).exists() for alias in ALIASES)


@pytest.mark.usefixtures("schemas")
def test_shards_are_set_up_listed_found_pinned_and_unpinned():
    assert "eu1: shard 1, 0 pinned tenants" in run("shards", "setup")
    tenant = tenant_of("us0")

    assert run("shards", "find", tenant) == "us0\n"
    assert run("shards", "pin", tenant, "eu1") == f"tenant {tenant!r} was pinned to eu1\n"
    assert run("shards", "find", tenant) == "eu1\n"
    assert run("shards", "list").splitlines() == [
        "0  us0: 0 tenants",
        "1  eu1: 0 tenants",
        f"pinned: {tenant} → eu1",
    ]
    assert json.loads(run("shards", "list", "--format=json"))["pins"] == {tenant: "eu1"}
    assert run("shards", "unpin", tenant) == f"tenant {tenant!r} is no longer pinned\n"
    with pytest.raises(CommandError, match="is not pinned"):
        run("shards", "unpin", tenant)
    with pytest.raises(CommandError, match="'mars' is not in"):
        run("shards", "pin", tenant, "mars")
    assert list_pins() == {}


@pytest.mark.usefixtures("shards")
def test_worker_refuses_a_database_that_is_no_shard():
    with pytest.raises(CommandError, match="--database='default' is not"):
        call_command("runworker", database="default", until_empty=True)


# checks


@pytest.mark.usefixtures("shards")
def test_checks_find_nothing_when_all_is_right():
    assert check_shards() == checks.check_routers() == check_set_up(databases=ALIASES) == []


@pytest.mark.parametrize(
    ("aliases", "changes", "said"),
    [
        (["us0", "eu1"], {"DATABASE": "default"}, "begins with 'us0', but DATABASE is 'default'"),
        (["us0", "mars"], {}, "has 'mars', which is not in DATABASES"),
        (["us0", "lite"], {}, "has 'lite', which is SQLite"),
    ],
)
@pytest.mark.usefixtures("shards")
def test_shards_that_cannot_be_used_are_named(aliases: list[str], changes: Any, said: str):
    with (
        other_database("lite", SQLITE),
        override_settings(TENANTQUEUE={**sharded(*aliases), **changes}),
    ):
        (found,) = check_shards()
        assert check_set_up(databases=ALIASES) == []

    assert (found.id, said in found.msg) == ("tenantqueue.E020", True)


@pytest.mark.usefixtures("shards")
@override_settings(DATABASE_ROUTERS=[])
def test_router_is_needed():
    assert "needs TenantQueueRouter" in check_shards()[0].msg


@pytest.mark.usefixtures("schemas")
def test_database_that_is_not_set_up_is_named():
    found = check_set_up(databases=["eu1"])

    assert [message.id for message in found] == ["tenantqueue.E021"]
    assert "'eu1' is not set up as a shard: run `manage.py tenantqueue" in found[0].msg


@pytest.mark.usefixtures("shards")
def test_database_with_other_migrations_is_named():
    forget_pins()
    with connections["eu1"].cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_worker RENAME COLUMN name TO title")
    try:
        found = check_set_up(databases=ALIASES)
    finally:
        with connections["eu1"].cursor() as cursor:
            cursor.execute("ALTER TABLE tenantqueue_worker RENAME COLUMN title TO name")

    assert [message.id for message in found] == ["tenantqueue.E018"]
    assert "The tables of 'eu1'" in found[0].msg


def test_database_that_is_down_is_a_warning(down: str):
    assert [message.id for message in check_set_up(databases=[down])] == ["tenantqueue.W006"]


def test_tables_of_the_app_are_not_those_of_one_tenant():
    assert Shard not in tables()


# admin


@pytest.fixture
def chosen(shards: None) -> Iterator[None]:
    with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, MIDDLEWARE]):
        yield


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_admin_shows_the_chosen_database_until_another_is_chosen(admin_client: Client):
    jobs = [echo.using(tenant=tenant_of(alias)).delay(alias) for alias in ALIASES]
    page = reverse("admin:tenantqueue_job_changelist")

    first = admin_client.get(page).content.decode()
    other = admin_client.get(page, {"shard": "eu1"}).content.decode()
    again = admin_client.get(page).content.decode()
    back = admin_client.get(page, {"shard": "us0"}).content.decode()

    assert [f"job/{jobs[0].pk}/" in text for text in (first, other, again, back)] == [
        *(True, False, False, True),
    ]
    assert [f"job/{jobs[1].pk}/" in text for text in (first, other, again, back)] == [
        *(False, True, True, False),
    ]
    assert "Django administration – eu1" in again


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_every_page_of_the_admin_is_that_of_the_chosen_database(admin_client: Client):
    tenant = tenant_of("eu1")
    job = echo.using(tenant=tenant, session="s").delay("x")
    with database("eu1"):
        run_pending()
    queue = TenantQueue.objects.using("eu1").get(tenant=tenant)
    admin_client.get(reverse("admin:index"), {"shard": "eu1"})

    pages = [
        reverse("admin:index"),
        reverse("admin:tenantqueue_job_change", args=[job.pk]),
        reverse("admin:tenantqueue_tenantqueue_change", args=[queue.pk]),
        reverse("admin:tenantqueue_session_changelist"),
        reverse("admin:tenantqueue_worker_changelist"),
        reverse("admin:tenantqueue_change_changelist"),
    ]
    answers = {page: admin_client.get(page).status_code for page in pages}
    export = admin_client.get(reverse("admin:tenantqueue_job_export", args=["csv"]))

    assert set(answers.values()) == {200}, answers
    assert str(job.pk) in b"".join(export.streaming_content).decode()


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_queue_is_added_in_the_database_of_its_tenant_alone(admin_client: Client):
    page = reverse("admin:tenantqueue_tenantqueue_add")
    values = {"tenant": tenant_of("eu1"), "name": "mail", "num_slots": 2, "weight": 1}

    wrong = admin_client.post(page, values)
    right = admin_client.post(f"{page}?shard=eu1", values)

    assert "are in the database “eu1”" in wrong.content.decode()
    assert right.status_code == 302
    assert [TenantQueue.objects.using(alias).count() for alias in ALIASES] == [0, 1]


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_bulk_action_of_the_admin_runs_in_the_chosen_database(admin_client: Client):
    job = echo.using(tenant=tenant_of("eu1")).delay("x")
    admin_client.get(reverse("admin:index"), {"shard": "eu1"})

    admin_client.post(
        reverse("admin:tenantqueue_job_changelist"),
        {"action": "cancel_selected", "_selected_action": [job.pk], "_apply": "1"},
    )

    assert job.refresh().state == "cancelled"


@pytest.mark.urls("tests.contrib.shards.urls")
def test_admin_links_to_the_other_databases_while_the_chosen_one_is_down(
    down: str, admin_client: Client
):
    with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, MIDDLEWARE]):
        answer = admin_client.get(reverse("admin:tenantqueue_job_changelist"), {"shard": down})
        back = admin_client.get(reverse("admin:tenantqueue_job_changelist"), {"shard": "us0"})

    assert (answer.status_code, back.status_code) == (503, 200)
    assert '<a href="?shard=us0">us0</a>' in answer.content.decode()


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_pages_outside_of_the_admin_are_not_changed(admin_client: Client):
    admin_client.get(reverse("admin:index"), {"shard": "eu1"})
    job = noop.using(tenant=tenant_of("us0")).delay()

    assert admin_client.get(job.status_url, {"shard": "eu1"}).json()["state"] == "ready"
    assert admin_client.get("/nowhere").status_code == 404
