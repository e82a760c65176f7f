"""A tenant is erased from every table, and exported before."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.cache import caches
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.api.models import ApiToken, IdempotencyKey
from django_tenantqueue.contrib.fireworq.models import FireworqQueue
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.contrib.shards.models import ShardMove, ShardPin
from django_tenantqueue.exceptions import InvalidOption, InvalidState
from django_tenantqueue.features import Feature, hooks
from django_tenantqueue.gate_keys import gate_key
from django_tenantqueue.models import (
    Change,
    ConcurrentJobMonitor,
    Duty,
    Figure,
    Job,
    MonitorAddition,
    MonitorPace,
    QueueRate,
    Session,
    TaskControl,
    TaskRate,
    TenantQueue,
    UniqueKey,
    Worker,
)
from django_tenantqueue.operations import erasure
from django_tenantqueue.operations.erasure import erase_tenant, tables
from django_tenantqueue.status import tenant_export
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, make_jobs, make_queue, state_of
from tests.testapp.tasks import noop

NEEDS = "alerts api fireworq prometheus retention routing schedules shards"
pytestmark = pytest.mark.django_db
TENANTS = ["acme", "a/b", "a\\", 'O\'Neill "%s" {x}', "x' OR '1'='1", "%", "_", "<script>", "客户"]


def fill(tenant: str) -> TenantQueue:
    """Put a row of a tenant into each table that has rows of tenants."""
    queue = make_queue(tenant)
    make_jobs(queue, 3)
    make_jobs(queue, 2, state="success")
    make_job(queue, state="held")
    monitor = ConcurrentJobMonitor.objects.create(
        tenant=tenant,
        name="m",
        parallel=1,
        anchor_id=make_job(queue).pk,
        created_at=timezone.now(),
    )
    MonitorAddition.objects.create(monitor=monitor, details=1)
    MonitorPace.objects.create(monitor=monitor, fed_at=timezone.now())
    QueueRate.objects.create(queue=queue, debt=1, as_of=timezone.now())
    FireworqQueue.objects.create(queue=queue, pushes=1)
    key = gate_key(tenant, "k")
    Session.objects.create(kind="serial", tenant=tenant, key="k", gate_key=key)
    Session.objects.create(kind="limit_user", tenant=tenant, key="k", gate_key=key)
    rule = AlertRule.objects.create(name=f"rule of {tenant}", tenant=tenant, kind="queue_late")
    Alert.objects.create(
        rule=rule, tenant=tenant, key="1", opened_at=timezone.now(), seen_at=timezone.now()
    )
    token = ApiToken.objects.create(tenant=tenant, name="n", scopes="read", digest=tenant)
    IdempotencyKey.objects.create(token=token, tenant=tenant, key="k", created_at=timezone.now())
    UniqueKey.objects.create(key=key, job_id=1, mode="until_executed")
    Schedule.objects.create(tenant=tenant, name="s", task="t", expression="1h", kind="interval")
    RetentionRule.objects.create(tenant=tenant, keep_days=1)
    ShardPin.objects.create(tenant=tenant, shard=1)
    ShardMove.objects.create(tenant=tenant, source=0, target=1)
    Routing.objects.create(tenant=tenant, pattern="x", queue=queue.name)
    Change.objects.create(source="code", action="add", object_kind="queue", tenant=tenant)
    numbers = dict.fromkeys(
        ("started", "succeeded", "failed", "retried", "cancelled", "wait_seconds", "run_seconds"), 1
    )
    Figure.objects.create(
        queue_id=queue.pk,
        at=timezone.now(),
        task="t",
        error="",
        minutes=1,
        waits=[],
        runs=[],
        **numbers,
    )
    return queue


def rows_of(queue: TenantQueue) -> dict[str, int]:
    found = {}
    for model in tables():
        sets = erasure.rows_of("default", model, queue.tenant, [queue.pk])
        found[model._meta.db_table] = sum(each.count() for each in sets)
    return found


def test_every_model_is_covered_when_one_is_added():
    ours = [app for app in apps.get_app_configs() if app.label.startswith("tenantqueue")]
    models = {model for app in ours for model in app.get_models() if not model._meta.proxy}

    assert len(models) > 20
    fleet = [model for hook in hooks(Feature.fleet_tables) for model in hook()]
    # a worker's `tenants` is the option that it was started with
    fleet += [Duty, TaskControl, TaskRate, Worker]
    assert models == {*tables(), *fleet}
    assert len(models) == len(tables()) + len(fleet)
    for model in fleet:
        names = {field.name for field in model._meta.get_fields()}
        assert not names & {"tenant", "queue", "queue_id", "monitor"}


@pytest.mark.parametrize("tenant", TENANTS)
def test_all_rows_of_one_tenant_go_when_it_is_erased(tenant: str):
    own, other = fill(tenant), fill(f"{tenant}/k")
    before, others = rows_of(own), rows_of(other)
    assert all(before.values())

    report = erase_tenant(tenant, using="default")

    assert report == before
    assert not any(rows_of(own).values())
    assert rows_of(other) == others
    change = Change.objects.get(action="erase")
    assert tenant not in (change.object_label, change.tenant)
    assert change.after == before
    assert not any(erase_tenant(tenant, using="default").values())


def test_nothing_is_changed_when_jobs_of_the_tenant_run():
    queue = fill("acme")
    make_job(queue, state="running")
    before = rows_of(queue)

    with pytest.raises(InvalidState, match=r"1 jobs of tenant 'acme'.*have not ended"):
        erase_tenant("acme", using="default")

    queue.refresh_from_db()
    assert rows_of(queue) == before
    assert not queue.paused
    assert not queue.retired


def test_running_jobs_are_asked_to_stop_when_that_is_wanted(monkeypatch):
    queue = fill("acme")
    job = make_job(queue, state="running")

    def end(seconds: float) -> None:
        assert job.refresh().cancel_requested_at is not None
        queue.refresh_from_db()
        assert queue.paused
        assert queue.retired
        Job.objects.filter(pk=job.pk)._raw_delete("default")

    monkeypatch.setattr(erasure.time, "sleep", end)
    erase_tenant("acme", using="default", stop=True)

    assert not any(rows_of(queue).values())


def test_rows_stay_when_running_jobs_do_not_stop_in_time():
    queue = fill("acme")
    job = make_job(queue, state="running")
    before = rows_of(queue)

    with pytest.raises(InvalidState, match="are paused and retired"):
        erase_tenant("acme", using="default", stop=True, wait=timedelta(0))

    assert rows_of(queue) == before
    assert state_of(job.pk) == "running"


def test_what_follows_a_job_of_another_tenant_goes_when_it_comes_meanwhile():
    then = noop.using(tenant="acme", queue="q", session="s").call()
    job = noop.using(tenant="zebra", on_success=then).delay()
    Change.objects.create(source="code", action="add", object_kind="queue", tenant="acme")

    def tell(table: str, rows: int) -> None:
        if table == Change._meta.db_table:  # goes after jobs and sessions
            run_pending()

    erase_tenant("acme", using="default", tell=tell)

    assert state_of(job.pk) == "success"
    assert Job.objects.get().pk == job.pk
    assert not Session.objects.exists()


def test_jobs_without_tenant_are_not_erased():
    with pytest.raises(InvalidOption, match="without a tenant"):
        erase_tenant("", using="default")


def test_results_in_a_cache_go_when_their_tenant_is_erased(settings):
    settings.CACHES = {"kept": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    caches["kept"].set("a", 1)
    caches["kept"].set("b", 1)
    queue = make_queue("acme")
    for ref in ("kept:a", "gone:a", "-"):
        make_job(queue, state="success", result_ref=ref)

    erase_tenant("acme", using="default")

    assert (caches["kept"].get("a"), caches["kept"].get("b")) == (None, 1)


def test_rows_go_in_small_steps_when_there_are_many(monkeypatch):
    monkeypatch.setattr(erasure, "BATCH", 2)
    monkeypatch.setattr(erasure, "READ", 4)
    queue = make_queue("acme")
    make_jobs(queue, 9)
    told: list[tuple[str, int]] = []

    erase_tenant("acme", using="default", tell=lambda *step: told.append(step))

    jobs = [rows for table, rows in told if table == "tenantqueue_job"]
    assert jobs == [2, 4, 6, 8, 9]


def test_command_asks_for_the_name_before_it_erases(monkeypatch):
    queue = fill("acme")
    monkeypatch.setattr("builtins.input", lambda text: "acm")

    with pytest.raises(CommandError, match="nothing was deleted"):
        call_command("tenantqueue", "erase", "--tenant=acme")
    assert all(rows_of(queue).values())

    monkeypatch.setattr("builtins.input", lambda text: "acme")
    out = io.StringIO()
    call_command("tenantqueue", "erase", "--tenant=acme", stdout=out)
    assert "7  tenantqueue_job" in out.getvalue()
    assert "rows of tenant 'acme' were deleted" in out.getvalue()


def test_command_deletes_nothing_when_there_is_no_terminal(monkeypatch):
    queue = fill("acme")

    def nobody(text: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    with pytest.raises(CommandError, match="--no-input"):
        call_command("tenantqueue", "erase", "--tenant=acme")

    assert all(rows_of(queue).values())


def test_command_prints_json_and_asks_nothing_when_told_so():
    fill("acme")
    out = io.StringIO()

    call_command("tenantqueue", "erase", tenant="acme", no_input=True, format="json", stdout=out)

    assert json.loads(out.getvalue())["rows"]["tenantqueue_job"] == 7


def test_command_fails_when_jobs_run():
    make_job(make_queue("acme"), state="running")

    with pytest.raises(CommandError, match="--stop"):
        call_command("tenantqueue", "erase", "--tenant=acme", "--no-input")


def export(tenant: str, **options: Any) -> list[dict[str, Any]]:
    out = io.StringIO()
    quiet = {"stdout": out, "stderr": io.StringIO()}
    call_command("tenantqueue", "export", tenant=tenant, **quiet, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("tenant", TENANTS)
def test_all_jobs_of_one_tenant_are_exported(tenant: str, monkeypatch):
    monkeypatch.setattr(tenant_export, "SMALL_BATCH", 3)
    queue = fill(tenant)
    fill(f"{tenant}x")
    make_job(queue, state="success", result={"a": 1}, args={"args": [], "kwargs": {"token": "t"}})

    rows = export(tenant)

    jobs = Job.objects.filter(queue=queue)
    assert {row["id"] for row in rows} == set(jobs.values_list("pk", flat=True))
    assert len(rows) == 8
    assert {(row["tenant"], row["queue"]) for row in rows} == {(tenant, "default")}
    last = max(rows, key=lambda row: row["id"])
    assert last["result"] == {"a": 1}
    assert last["args"]["kwargs"] == {"token": "••••••"}


def test_export_fails_when_the_tenant_has_no_queue():
    with pytest.raises(CommandError, match="tenant 'acm' has no queue"):
        export("acm")


def test_export_reads_by_a_cursor_when_the_settings_have_none(monkeypatch):
    make_jobs(make_queue("acme"), 3)
    connection = connections["default"]
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    opened = []
    whole = connection.chunked_cursor
    monkeypatch.setattr(connection, "chunked_cursor", lambda: opened.append(1) or whole())

    assert [count for count, _ in tenant_export.export_jobs("default", "acme")] == [3]

    assert opened
    assert connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] is True
