"""The jobs are in a database of their own: everything reads and writes there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.core.management import call_command
from django.db import InternalError, connection, connections, models, router
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import include, path, reverse

from django_tenantqueue import ConcurrentJobMonitor, checks, delayed
from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.models import ApiToken
from django_tenantqueue.models import Job, Session, TenantQueue
from django_tenantqueue.status.job_status import describe_job
from django_tenantqueue.status.your_jobs import your_jobs
from django_tenantqueue.testing import enqueued_jobs, run_pending
from tests.databases import SQLITE, other_database, settings_of, url_of_schema
from tests.site import label_of
from tests.testapp.models import Report
from tests.testapp.tasks import add, echo, fail, noop, tell_monitor

NEEDS = "api fireworq"
POSTGRESQL = {"ENGINE": "django.db.backends.postgresql"}
OURS = "django_tenantqueue.routers.TenantQueueRouter"
REFUSING = "tests.test_two_databases.RefusingRouter"
REPLICA = "tests.test_two_databases.ReplicaRouter"
COMMANDS = (
    ["status"],
    ["status", "--format=json"],
    ["schedules", "list"],
    ["schedules", "sync"],
    ["export", "--tenant=acme"],
    ["prune"],
)
API = ("jobs", "sessions", "schedules", "routings", "tasks")
PAGES = (
    *(f"/api/{page}" for page in API),
    *(f"/fireworq/{page}" for page in ("queues", "queues/stats", "routings")),
)
SHOWN = (
    "job",
    "tenantqueue",
    "session",
    "userlimit",
    "concurrentjobmonitor",
    "worker",
    "schedule",
    "routing",
    "taskcontrol",
    "retentionrule",
    "alertrule",
    "alert",
    "apitoken",
    "change",
)


class RefusingRouter:
    """Makes no tables."""

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return False


class ReplicaRouter:
    """Reads everything from a replica, and here each such read is an error: there is none."""

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: type[models.Model], **hints: Any) -> str:
        return "default"


@pytest.fixture
def jobs(transactional_db: None, database_url: str, server_url: str) -> Iterator[None]:
    """Have the jobs in another database, `jobs`; a statement for them in `default` is an error."""
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA jobs")
    settings = settings_of(url_of_schema(server_url, name, "jobs"))
    try:
        with other_database("jobs", settings):
            call_command("migrate", database="jobs", verbosity=0)
            with override_settings(TENANTQUEUE={"DATABASE": "jobs"}), nothing_in_default():
                yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA jobs CASCADE")


@contextmanager
def nothing_in_default() -> Iterator[None]:
    def look(execute: Any, sql: str, *args: Any) -> Any:
        assert "tenantqueue_" not in sql, sql
        return execute(sql, *args)

    with connections["default"].execute_wrapper(look):
        yield


@pytest.mark.usefixtures("jobs")
def test_every_read_is_of_the_jobs_database_without_a_router():
    job = add.using(tenant="acme", session="s", limit_user="7").delay(1, 2)
    assert (job.refresh().state, len(enqueued_jobs(add))) == ("ready", 1)
    assert list(Session(kind="serial", gate_key=job.session_key).jobs()) == [job]
    monitor = ConcurrentJobMonitor.objects.start(
        "three", [echo.call(n) for n in range(3)], parallel=2, on_end=tell_monitor.call()
    )
    assert (monitor.details().count(), monitor.progress().total) == (3, 3)
    failed = fail.using(tenant="acme", max_attempts=1, created_by="7").delay()
    report = Report.objects.create(title="mine")
    executed = delayed(report, tenant="acme").execute("pdf")

    run_pending(scheduled=True)

    assert job.refresh().result == 3
    assert sorted(detail.result for detail in monitor.details()) == [0, 1, 2]
    assert (monitor.progress().done, failed.wait(1).state) == (3, "error")
    assert [row.job.pk for row in your_jobs(user="7").jobs] == [failed.pk]
    assert [row.job.pk for row in your_jobs(source=report).jobs] == [executed.pk]
    assert describe_job(job)["result"] == 3


urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("django_tenantqueue.contrib.api.urls")),
    path("fireworq/", include("django_tenantqueue.contrib.fireworq.urls")),
    path("jobs/", include("django_tenantqueue.web.urls")),
]


@pytest.mark.usefixtures("jobs")
@pytest.mark.urls(__name__)
@override_settings(DATABASE_ROUTERS=[OURS])
def test_every_page_and_command_reads_the_jobs_database(admin_client: Client):
    job = echo.using(tenant="acme", session="s").delay("x")
    monitor = ConcurrentJobMonitor.objects.start("one", [noop.call()], parallel=1, tenant="acme")
    run_pending()
    secret = make_token("all", scopes=ApiToken.Scope.values, tenant="acme")[1]
    bearer = {"Authorization": f"Bearer {secret}"}

    names = ["index", *(f"{label_of(model)}_{model}_changelist" for model in SHOWN)]
    pages = [reverse(f"admin:{name}") for name in names]
    for model, key in (
        ("job", job.pk),
        ("concurrentjobmonitor", monitor.pk),
        ("tenantqueue", job.refresh().queue_id),
    ):
        pages.append(reverse(f"admin:tenantqueue_{model}_change", args=[key]))
    pages += [*PAGES, f"/api/jobs/{job.pk}"]
    pages += [job.status_url, f"/api/monitors/{monitor.pk}", f"/api/jobs/{job.pk}/wait"]
    answers = {page: admin_client.get(page, headers=bearer).status_code for page in pages}
    for command in (*COMMANDS, ["explain", str(job.pk)]):
        call_command("tenantqueue", *command, stdout=StringIO())

    assert set(answers.values()) == {200}, answers
    assert Job.objects.get(pk=job.pk).queue.tenant == "acme"


@pytest.mark.usefixtures("jobs")
@override_settings(DATABASE_ROUTERS=[OURS])
def test_object_is_added_in_the_jobs_database(admin_client: Client):
    values = {"tenant": "acme", "name": "mail", "num_slots": 2, "weight": 1}

    for _ in range(2):
        admin_client.post(reverse("admin:tenantqueue_tenantqueue_add"), values)

    assert TenantQueue.objects.using("jobs").filter(tenant="acme").count() == 1


@pytest.mark.django_db
@override_settings(DATABASE_ROUTERS=[OURS, REPLICA])
def test_job_is_read_from_the_primary_when_there_is_a_replica():
    job = noop.using(tenant="acme").delay()

    assert Job.objects.get().queue.tenant == "acme"
    assert Job.objects.db == job._state.db == "default"
    assert checks.check_routers() == []


@pytest.fixture
def replica(transactional_db: None, database_url: str) -> Iterator[None]:
    """Have an alias `replica` that cannot be written to, and the routers of the page."""
    page = Path(__file__).parents[1] / "docs/howto/server.md"
    (code,) = re.findall(r"^```python\n(class \w*Router.*?)^```$", page.read_text(), re.M | re.S)
    space: dict[str, Any] = {}
    exec(code, space)
    read_only = f"{database_url}?options={quote('-c default_transaction_read_only=on')}"
    with (
        other_database("replica", settings_of(read_only)),
        override_settings(DATABASE_ROUTERS=[OURS, space["PrimaryReplicaRouter"]()]),
    ):
        yield


@pytest.mark.usefixtures("replica")
def test_jobs_are_in_the_primary_and_models_are_read_from_the_replica_of_the_page():
    assert checks.check_routers() == []
    Report.objects.create(title="mine")
    report = Report.objects.get()
    job = echo.using(tenant="acme", session="s").delay(report.pk)
    failed = fail.using(max_attempts=1).delay()
    executed = delayed(report, tenant="acme").execute("pdf")
    monitor = ConcurrentJobMonitor.objects.start("one", [noop.call()], parallel=1)

    run_pending()

    assert report._state.db == "replica"
    assert Job.objects.get(pk=job.pk)._state.db == "default"
    assert [each.refresh().state for each in (job, failed, executed)] == [
        *("success", "error", "success"),
    ]
    assert monitor.progress().done == 1
    assert failed.retry()
    assert Job.objects.using("replica").filter(state="ready").count() == 1
    with pytest.raises(InternalError, match="read-only transaction"):
        Report.objects.using("replica").create(title="not there")


@pytest.mark.django_db
def test_enqueues_are_seen_by_nothing_that_watches_cursors() -> None:
    seen: list[str] = []

    def watch(execute: Any, sql: str, *args: Any) -> Any:
        seen.append(sql)
        return execute(sql, *args)

    noop.delay()
    with CaptureQueriesContext(connection) as captured, connection.execute_wrapper(watch):
        noop.delay()
        assert len(captured) == len(seen) == 0
        Job.objects.count()

    assert len(captured) == len(seen) == 1


@pytest.mark.parametrize(
    ("database", "routers", "said"),
    [
        ("jobs", [], "use the database 'default', and TENANTQUEUE['DATABASE'] is 'jobs'"),
        ("default", [REPLICA], "use the database 'replica'"),
        ("default", [REPLICA, OURS], "use the database 'replica'"),
        ("jobs", [REFUSING, OURS], "have no tables in the database 'jobs'"),
        ("jobs", [OURS], ""),
        ("jobs", [OURS, REFUSING], ""),
    ],
)
def test_router_is_asked_for_when_jobs_are_read_elsewhere(database, routers, said):
    with (
        other_database("jobs", POSTGRESQL),
        override_settings(TENANTQUEUE={"DATABASE": database}, DATABASE_ROUTERS=routers),
    ):
        messages = checks.check_routers()

    assert [message.id for message in messages] == ["tenantqueue.E015"][: len(said)]
    assert all(said in message.msg for message in messages)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_whole", [True, False], ids=["all apps", "back to zero"])
def test_migrations_do_nothing_when_another_database_is_not_postgresql(is_whole: bool, tmp_path):
    with other_database("lite", {**SQLITE, "NAME": str(tmp_path / "lite")}):
        call_command("migrate", database="lite", verbosity=0)
        if not is_whole:
            call_command("migrate", "tenantqueue", "zero", database="lite", verbosity=0)
        tables = connections["lite"].introspection.table_names()
        messages = checks.check_routers()
        with override_settings(DATABASE_ROUTERS=[OURS]):
            assert checks.check_routers() == []

    assert "auth_user" in tables
    assert not [table for table in tables if table.startswith("tenantqueue_")]
    assert [message.id for message in messages] == ["tenantqueue.W015"]
    assert "The database 'lite' is SQLite: the migrations of django_tenantqueue" in messages[0].msg


@override_settings(TENANTQUEUE={"DATABASE": "jobs"}, DATABASE_ROUTERS=[OURS])
def test_tables_are_made_in_the_jobs_database_alone():
    assert router.allow_migrate("jobs", "tenantqueue")
    assert not router.allow_migrate("default", "tenantqueue")
    assert router.allow_migrate("default", "testapp")
