"""After an erasure no column of any table has the tenant's name, or data of its jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import caches
from django.db import connection
from django.utils import timezone

from django_tenantqueue import bulk
from django_tenantqueue.contrib.alerts.check import check_rules
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.api.models import IdempotencyKey
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.control import mute
from django_tenantqueue.exceptions import InvalidState
from django_tenantqueue.gate_keys import gate_key
from django_tenantqueue.models import (
    Change,
    ConcurrentJobMonitor,
    Duty,
    Job,
    TaskControl,
    TenantQueue,
    UniqueKey,
    Worker,
)
from django_tenantqueue.operations import control
from django_tenantqueue.operations.erasure import erase_tenant
from django_tenantqueue.operations.erasure_elsewhere import ERASED
from django_tenantqueue.operations.tuning import switch_rows
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, make_jobs, make_queue, make_worker, state_of
from tests.testapp.tasks import add, noop, refuse

from .test_erasure import fill

NEEDS = "alerts api fireworq prometheus retention routing schedules shards"
pytestmark = pytest.mark.django_db
TENANT = "Zwergfink „\\GmbH“"
PLANTED = "Erika Mustermann"
OTHER = "zebra"
SOUGHT = "zwergfink", "mustermann"


def traces() -> set[str]:
    """Return the columns, of all tables of the database, that have what was planted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "JOIN information_schema.tables USING (table_schema, table_name) "
            "WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        columns = cursor.fetchall()
        found = set()
        for table, column in columns:
            said = f'lower("{column}"::text) ~ %s'
            cursor.execute(
                f'SELECT count(*) FROM "{table}" WHERE {said}',
                ["|".join(SOUGHT)],
            )
            if cursor.fetchone()[0]:
                found.add(f"{table}.{column}")
    return found


def plant_jobs(queue: TenantQueue) -> None:
    """Put data into each column of jobs that takes a text, in each state."""
    text = f"{PLANTED} of {TENANT}"
    values: dict[str, Any] = {
        "task": refuse.name,
        "source_method": refuse.name,
        "args": {"args": [text], "kwargs": {text: text}},
        "source_id": text,
        "labels": [text],
        "created_by": text,
        "context": {"user": text},
        "progress_message": text,
        "stats": {text: 1},
        "session_key": gate_key(TENANT, PLANTED),
        "limit_user": gate_key(TENANT, PLANTED),
        "exclusive_key": gate_key(TENANT, PLANTED),
        "unique_key": gate_key(TENANT, PLANTED),
        "errors": [{"class": "ValueError", "message": text, "traceback": text}],
    }
    for state in ("ready", "scheduled", "held", "success", "error", "cancelled"):
        ended = {"result": {"of": text}} if state == "success" else {}
        make_job(queue, state=state, **values, **ended)
    for days in (1, 40, 4000):  # of months with a leaf or without
        ended_at = timezone.now() - timedelta(days=days)
        make_job(queue, state="success", finished_at=ended_at, **values)


def plant_rows(queue: TenantQueue) -> None:
    UniqueKey.objects.create(key=gate_key(TENANT, PLANTED), job_id=2, mode="until_executed")
    IdempotencyKey.objects.filter(tenant=TENANT).update(
        key=PLANTED, answer={"detail": f"{PLANTED} has a job"}, status=202
    )
    Schedule.objects.filter(tenant=TENANT).update(
        name=PLANTED, kwargs={"name": PLANTED}, last_error=PLANTED
    )
    ConcurrentJobMonitor.objects.filter(tenant=TENANT).update(name=PLANTED)
    Alert.objects.filter(tenant=TENANT).update(label=f"{TENANT} / q", text=PLANTED)
    Change.objects.filter(tenant=TENANT).update(object_label=PLANTED, before={"name": PLANTED})


def plant_bulk() -> None:
    """Let bulk actions look for the data: ended ones of several kinds, with their entries."""
    make_queue(OTHER, "mail")
    make_queue(TENANT, "mail")
    for filters, values in (
        ({"state": "error", "q": PLANTED}, None),
        ({"state": "error", "tenant": TENANT}, None),
        ({"state": "error", "tenant": OTHER}, None),
        ({"state": "ready", "tenant": OTHER}, {"queue": "mail", "tenant": TENANT}),
    ):
        bulk.start("retry" if values is None else "move", filters, values)
    run_pending()


def plant_changes(queue: TenantQueue, other: TenantQueue) -> None:
    tenants = [queue.tenant, other.tenant]
    queues = TenantQueue.objects.filter(pk__in=[queue.pk, other.pk])
    switch_rows("default", queues, {"retired": True})
    switch_rows("default", queues, {"retired": False})
    muted = {"until": timedelta(hours=1), "reason": f"{PLANTED} of {TENANT} knows"}
    mute("queue_late", **muted)
    for tenant in tenants:
        mute("queue_paused", tenant=tenant, **muted)
    mute(make_alert_rule("muted", "queue_late"), **muted)
    monitors = ConcurrentJobMonitor.objects.filter(tenant__in=tenants)
    switch_rows("default", monitors, {"paused": True})
    Change.objects.create(
        source="admin",
        action="tune",
        object_kind="routing",
        tenant=OTHER,
        before={"tenant": TENANT, "queue": [f"{TENANT} / default", "x"]},
        after={"tenant": OTHER, "jobs": 3},
    )


def plant_alerts(queue: TenantQueue, other: TenantQueue) -> list[Job]:
    """Have a rule about all tenants find something in both, and two ways to tell it."""
    make_alert_rule("all", "queue_late", log=True, webhook_url="http://127.0.0.1:9/")
    moment = timezone.now() - timedelta(hours=1)
    for each in (queue, other):
        TenantQueue.objects.filter(pk=each.pk).update(paused=True)
        make_jobs(each, 1, created_at=moment, run_at=moment)
    check_rules("default")
    run_pending()
    return list(Job.objects.filter(task="django_tenantqueue.alerts.deliver").order_by("pk"))


def plant_follow_ups(other: TenantQueue) -> list[Job]:
    """Have jobs of the other tenant be followed by ones of the tenant, at several depths."""
    own = add.using(tenant=TENANT, queue="later", session=PLANTED).call(PLANTED, 1)
    between = noop.using(tenant=OTHER, queue="later", on_success=[own]).call()
    kept = noop.using(tenant=OTHER, queue="later").call()
    waits = noop.using(tenant=OTHER, queue="blocked", on_success=[own, between, kept]).delay()
    ended = noop.using(tenant=OTHER, queue="blocked", on_success=own).delay()
    TenantQueue.objects.filter(tenant=OTHER, name="blocked").update(paused=True)
    control.cancel([ended.pk])
    return [waits, ended]


def plant_in_fleet() -> tuple[Worker, Schedule]:
    """Put the tenant's name into rows about the fleet."""
    worker = make_worker(tenants=[TENANT, OTHER], last_error=f"{TENANT}: {PLANTED}")
    text = f"ValueError: {TENANT}: {PLANTED}"
    Duty.objects.create(
        name="schedules", worker="w", ran_at=timezone.now(), duration_seconds=1, error=text
    )
    Duty.objects.create(
        name="queues", worker="w", ran_at=timezone.now(), duration_seconds=1, outcome=TENANT
    )
    schedule = Schedule.objects.create(
        name="all", task="t", expression="1h", kind="interval", tenant=None, last_error=text
    )
    AlertRule.objects.create(name="spoilt", kind="queue_late", last_error=text)
    return worker, schedule


def test_no_column_names_the_tenant_or_has_its_data_when_it_was_erased(settings: Any) -> None:
    settings.CACHES = {"kept": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    caches["kept"].set("a", PLANTED)
    queue, other = fill(TENANT), fill(OTHER)
    TaskControl.objects.create(task="t", num_slots=1)
    plant_jobs(queue)
    make_job(queue, state="success", result_ref="kept:a")
    plant_rows(queue)
    plant_bulk()
    plant_changes(queue, other)
    deliveries = plant_alerts(queue, other)
    followed = plant_follow_ups(other)
    worker, schedule = plant_in_fleet()
    before = traces()
    assert {
        "tenantqueue_job_hot.args",
        "tenantqueue_job_hot.follow_ups",
        "tenantqueue_job_history_default.args",
        "tenantqueue_change.object_label",
        "tenantqueue_change.before",
        "tenantqueue_alert.label",
        "tenantqueue_uniquekey.key",
        "tenantqueue_idempotencykey.answer",
        "tenantqueue_worker.tenants",
        "tenantqueue_schedule.last_error",
        "tenantqueue_duty.outcome",
    } <= before
    others = Job.objects.filter(queue__tenant=OTHER).count()
    entries = Change.objects.exclude(tenant=TENANT).count()

    erase_tenant(TENANT, using="default", stop=True)

    assert traces() == set()
    assert caches["kept"].get("a") is None
    assert Job.objects.filter(queue__tenant=OTHER).count() == others
    assert Change.objects.count() == entries + 1
    worker.refresh_from_db()
    assert worker.tenants == [ERASED, OTHER]
    schedule.refresh_from_db()
    assert schedule.tenant is None
    waits, ended = (job.refresh() for job in followed)
    assert [call["queue_id"] for call in waits.follow_ups] == [
        TenantQueue.objects.get(tenant=OTHER, name="later").pk
    ] * 2
    assert "follow_ups" not in str(waits.follow_ups[1])
    assert (waits.state, ended.follow_ups) == ("ready", None)
    assert len(deliveries) == 2
    assert {state_of(job.pk) for job in deliveries} == {"success", "scheduled"}


def test_bulk_actions_that_may_act_on_its_jobs_have_to_end_before_a_tenant_is_erased() -> None:
    queue = make_queue(TENANT, "mail")
    make_queue(OTHER, "mail")
    bulk.start("retry", {"state": "error", "tenant": OTHER})
    kept = bulk.start("retry", {"queue_id": str(make_queue(OTHER, "x").pk)})
    of_all = bulk.start("retry", {"state": "error", "q": PLANTED})
    of_queue = bulk.start("retry", {"queue_id": str(queue.pk)})
    to_it = bulk.start("move", {"tenant": OTHER}, {"queue": "mail", "tenant": TENANT})

    with pytest.raises(InvalidState, match="3 jobs of tenant"):
        erase_tenant(TENANT, using="default")
    assert {state_of(job.pk) for job in (of_all, of_queue, to_it)} == {"ready"}

    erase_tenant(TENANT, using="default", stop=True)

    assert not Job.objects.filter(pk__in=[of_all.pk, of_queue.pk, to_it.pk]).exists()
    assert state_of(kept.pk) == "ready"
    assert Job.objects.count() == 2
    assert traces() == set()
