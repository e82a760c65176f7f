"""A tenant moves from one database to another with all its rows."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import OperationalError, connections, transaction
from django.db.models import F

from django_tenantqueue import ConcurrentJobMonitor, Serial, Unique, control, group
from django_tenantqueue.conf import database
from django_tenantqueue.contrib.shards import carrying, moving
from django_tenantqueue.contrib.shards.control import (
    cancel_move,
    list_pins,
    move_tenant,
    pin_tenant,
    shard_of,
    shard_of_id,
)
from django_tenantqueue.contrib.shards.models import Shard, ShardMove
from django_tenantqueue.contrib.shards.routes import forget_pins
from django_tenantqueue.contrib.shards.setup import set_up
from django_tenantqueue.exceptions import InvalidState, TenantMoving
from django_tenantqueue.models import Change, Job, Session, TenantQueue, UniqueKey
from django_tenantqueue.models.change import models_by_kind
from django_tenantqueue.operations import enqueue, queues
from django_tenantqueue.operations.erasure import erase_tenant, tables
from django_tenantqueue.operations.queues import forget_queues
from django_tenantqueue.reports import read_report
from django_tenantqueue.testing import run_pending
from tests.contrib.shards.conftest import ALIASES, tenant_of
from tests.testapp.tasks import add, echo, fail, noop

pytestmark = pytest.mark.usefixtures("shards")
OLD, NEW = ALIASES


@pytest.fixture
def tenant() -> str:
    return tenant_of(OLD)


def jobs(alias: str) -> dict[int, str]:
    return dict(Job.objects.using(alias).order_by("id").values_list("id", "task"))


def states(alias: str) -> dict[str, tuple[bool, bool]]:
    rows = TenantQueue.objects.using(alias).order_by("name")
    return {row.name: (row.paused, row.retired) for row in rows}


def counts(alias: str, tenant: str) -> dict[str, int]:
    """Count a tenant's rows in each table."""
    found = {}
    ids = list(TenantQueue.objects.using(alias).filter(tenant=tenant).values_list("pk", flat=True))
    for model, lookup in tables().items():
        value: Any = {"queue_id__in": ids, "key__startswith": f"{tenant}/"}.get(lookup, tenant)
        count = model._default_manager.using(alias).filter(**{lookup: value}).count()
        if count and model not in (carrying.ShardPin, carrying.ShardMove):
            found[model.__name__] = count
    return found


def test_all_rows_follow_and_keep_their_ids(tenant: str):
    stays = echo.using(tenant=tenant_of(OLD, 1)).delay(1)
    done = add.using(tenant=tenant).delay(1, 2)
    with database(OLD):
        run_pending()
    waiting = [
        echo.using(tenant=tenant, queue="mail").delay(1),
        echo.using(tenant=tenant, session="s").delay(1),
        echo.using(tenant=tenant, session="s").delay(2),
        echo.using(tenant=tenant, limit_user="u", labels=["x"]).delay(3),
        echo.using(tenant=tenant, run_at=timedelta(hours=1)).delay(4),
        add.using(tenant=tenant, unique=Unique("until_executed"), on_success=echo.call(1)).delay(
            3, 4
        ),
    ]
    monitor = ConcurrentJobMonitor.objects.start("m", [noop.call()] * 3, parallel=1, tenant=tenant)
    control.pause(queue="mail", tenant=tenant)
    control.tune(queue="default", tenant=tenant, num_slots=3)
    before, all_jobs = counts(OLD, tenant), jobs(OLD)
    other = noop.using(tenant=tenant_of(NEW)).delay()

    move_tenant(tenant, NEW)

    assert counts(OLD, tenant) == {}
    assert {**counts(NEW, tenant), "Change": 0} == {**before, "Change": 0}
    assert jobs(OLD) == {stays.pk: stays.task}
    assert set(jobs(NEW)) == {other.pk, *all_jobs} - {stays.pk}
    assert shard_of(tenant) == NEW
    assert list_pins() == {tenant: NEW}
    assert not ShardMove.objects.using(OLD).exists()
    assert not ShardMove.objects.using(NEW).exists()
    assert states(NEW) == {"default": (False, False), "mail": (True, False)}
    assert shard_of_id(waiting[0].pk) == shard_of_id(done.pk) == NEW
    assert shard_of_id(monitor.pk, is_monitor=True) == NEW
    assert done.refresh().result == 3
    control.resume(queue="mail", tenant=tenant)
    control.run_now(waiting[4].pk)
    with database(NEW):
        run_pending()
    assert {job.refresh().state for job in waiting} == {"success"}
    follow_up = Job.objects.using(NEW).get(previous_id=waiting[5].pk)
    assert follow_up.queue.tenant == tenant
    assert ConcurrentJobMonitor.objects.using(NEW).get(pk=monitor.pk).progress().done == 3


def test_new_jobs_start_after_those_that_have_moved(tenant: str):
    for _ in range(50):
        noop.using(tenant=tenant_of(OLD, 1)).delay()
    old = echo.using(tenant=tenant).delay(1)

    move_tenant(tenant, NEW)

    new = echo.using(tenant=tenant).delay(2)
    assert new._state.db == NEW
    assert new.pk > old.pk


def test_tenant_moves_back(tenant: str):
    job = echo.using(tenant=tenant).delay(1)
    move_tenant(tenant, NEW)
    other = echo.using(tenant=tenant).delay(2)

    move_tenant(tenant, OLD)

    assert [job.pk, other.pk] == sorted(jobs(OLD))
    assert shard_of_id(other.pk) == OLD
    with database(OLD):
        run_pending()
    assert job.refresh().result == 1
    assert other.refresh().result == 2


def test_monitor_that_was_read_before_the_move_takes_details_and_closes(tenant: str):
    monitor = ConcurrentJobMonitor.objects.start(
        "m", [noop.call()], parallel=1, tenant=tenant, keep_open=True
    )
    move_tenant(tenant, NEW)

    monitor.add([noop.call()])
    monitor.close()

    with database(NEW):
        run_pending()
    progress = ConcurrentJobMonitor.objects.using(NEW).get(pk=monitor.pk).progress()
    assert (progress.done, progress.status) == (2, "ended")


def test_unique_key_blocks_after_the_move(tenant: str):
    call = add.using(tenant=tenant, unique=Unique("until_executed"))
    job = call.delay(1, 2)

    move_tenant(tenant, NEW)

    assert call.delay(1, 2).pk == job.pk
    assert UniqueKey.objects.using(NEW).count() == 1


def test_halted_session_is_halted_after_the_move(tenant: str):
    fail.using(tenant=tenant, session=Serial("s", on_failure="halt"), max_attempts=1).delay()
    with database(OLD):
        run_pending()
    later = echo.using(tenant=tenant, session="s").delay(1)

    move_tenant(tenant, NEW)

    with database(NEW):
        run_pending()
    assert later.refresh().state == "held"
    assert Session.objects.using(NEW).get().halted_at is not None


def test_job_held_by_its_task_is_released_where_the_task_has_no_control(tenant: str):
    control.pause(task=echo, using=OLD)
    job = echo.using(tenant=tenant).delay(1)
    with database(OLD):
        run_pending()

    move_tenant(tenant, NEW)

    with database(NEW):
        run_pending()
    assert job.refresh().state == "success"


def test_audit_log_and_history_of_queues_follow(tenant: str):
    noop.using(tenant=tenant).delay()
    control.tune(queue="default", tenant=tenant, num_slots=2)

    move_tenant(tenant, NEW)

    queue = TenantQueue.objects.using(NEW).get(tenant=tenant)
    entries = list(Change.objects.using(NEW).filter(tenant=tenant).order_by("id"))
    assert {(entry.action, tuple(entry.object_ids)) for entry in entries} == {
        ("tune", (queue.pk,)),
        ("move", (queue.pk,)),
    }


# the steps


class Killed(BaseException):
    """Ends a move as if its process were killed at that place."""


def kill(monkeypatch: pytest.MonkeyPatch, name: str, *, of: Any = moving._Move) -> None:
    def die(*args: Any, **kwargs: Any) -> None:
        raise Killed

    monkeypatch.setattr(of, name, die)


def stop_move(tenant: str, place: str, *, to: str = NEW) -> None:
    """Move a tenant up to a place, and stop there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving._Move, "_reopen", lambda self: None)  # a killed process cannot
        kill(patch, place)
        with pytest.raises(Killed):
            move_tenant(tenant, to)


@pytest.mark.parametrize("place", ["_close", "_carry", "open", "_raise_ids", "follow"])
def test_move_that_was_killed_is_completed(tenant: str, place: str):
    done = add.using(tenant=tenant).delay(1, 2)
    with database(OLD):
        run_pending()
    job = echo.using(tenant=tenant).delay(1)
    stop_move(tenant, place)

    move_tenant(tenant, NEW)

    assert counts(OLD, tenant) == {}
    assert set(jobs(NEW)) == {done.pk, job.pk}
    assert states(NEW) == {"default": (False, False)}
    with database(NEW):
        run_pending()
    assert job.refresh().state == "success"


def test_mover_that_dies_between_the_two_commits_leaves_nothing_that_counts(
    tenant: str, monkeypatch: pytest.MonkeyPatch
):
    job = echo.using(tenant=tenant).delay(1)
    with monkeypatch.context() as patch:
        kill(patch, "write_pin", of=moving)  # after the commit of the target
        with pytest.raises(Killed):
            move_tenant(tenant, NEW)
    assert set(jobs(OLD)) == set(jobs(NEW)) == {job.pk}
    with database(NEW):
        run_pending()
    assert Job.objects.using(NEW).get().state == "ready", "it is not run there"
    assert shard_of_id(job.pk) == OLD

    move_tenant(tenant, NEW)

    assert jobs(OLD) == {}
    assert set(jobs(NEW)) == {job.pk}


@pytest.mark.parametrize("place", ["_close", "_carry", "write_pin"])
def test_cancelled_move_leaves_all_as_it_was(tenant: str, place: str):
    job = echo.using(tenant=tenant).delay(1)
    echo.using(tenant=tenant, queue="mail").delay(1)
    control.pause(queue="mail", tenant=tenant)
    before, queues = counts(OLD, tenant), states(OLD)
    if place == "write_pin":
        with pytest.MonkeyPatch.context() as patch:
            kill(patch, place, of=moving)
            with pytest.raises(Killed):
                move_tenant(tenant, NEW)
    else:
        stop_move(tenant, place)

    assert cancel_move(tenant)

    assert counts(OLD, tenant) == before
    assert counts(NEW, tenant) == {}
    assert states(OLD) == queues
    assert states(NEW) == {}
    assert not ShardMove.objects.using(OLD).exists()
    assert not ShardMove.objects.using(NEW).exists()
    assert not cancel_move(tenant)
    assert shard_of(tenant) == OLD
    with database(OLD):
        run_pending()
    assert job.refresh().state == "success"


@pytest.mark.parametrize("place", ["_close", "_carry", "open"])
def test_queues_that_are_paused_during_a_move_stay_paused(tenant: str, place: str):
    for name in ("default", "mail", "old", "other"):
        noop.using(tenant=tenant, queue=name).delay()
    control.pause(queue="mail", tenant=tenant)
    stop_move(tenant, place)
    forget_pins()

    control.pause(queue="default", tenant=tenant)
    control.resume(queue="mail", tenant=tenant)
    control.tune(queue="old", tenant=tenant, retired=True)
    move_tenant(tenant, NEW)

    assert states(NEW) == {
        "default": (True, False),
        "mail": (False, False),
        "old": (False, True),
        "other": (False, False),
    }


def test_queue_that_is_paused_during_a_move_stays_paused_when_it_is_cancelled(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "_close")

    control.pause(queue="default", tenant=tenant)
    cancel_move(tenant)

    assert states(OLD) == {"default": (True, False)}


def test_switched_move_is_not_cancelled(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "open")

    with pytest.raises(InvalidState, match="has moved to"):
        cancel_move(tenant)


@pytest.mark.parametrize("place", ["_carry", "open", "_raise_ids"])
def test_enqueue_is_refused_while_the_tenant_is_closed(tenant: str, place: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, place)

    for queue in ("default", "new"):
        with pytest.raises(TenantMoving):
            noop.using(tenant=tenant, queue=queue).delay()
        with pytest.raises(TenantMoving):
            group([noop.call()] * 2).using(tenant=tenant, queue=queue).delay()

    move_tenant(tenant, NEW)
    assert noop.using(tenant=tenant, queue="new").delay()._state.db == NEW


def test_process_with_old_pins_makes_no_queue_in_the_database_that_was_left(tenant: str):
    noop.using(tenant=tenant).delay()
    move_tenant(tenant, NEW)

    with connections[OLD].cursor() as cursor, pytest.raises(Exception, match="another database"):
        cursor.execute(
            "INSERT INTO tenantqueue_tenantqueue (tenant, name, created_at) "
            "VALUES (%s, 'late', now())",
            [tenant],
        )


def test_enqueues_go_on_while_jobs_run(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "_close")

    job = noop.using(tenant=tenant).delay()
    with database(OLD):
        run_pending()

    assert job.refresh().state == "ready", "the queues are paused"


def test_move_waits_for_running_jobs_and_names_them(tenant: str):
    job = noop.using(tenant=tenant).delay()
    Job.objects.using(OLD).filter(pk=job.pk).update(
        state="running", worker_id=1, queued_at=job.created_at or job.run_at
    )

    with pytest.raises(InvalidState, match=f"running job {job.pk}"):
        move_tenant(tenant, NEW, wait=0)

    assert cancel_move(tenant)


def test_open_transaction_keeps_a_tenant_from_moving_and_enqueues_go_on(tenant: str):
    noop.using(tenant=tenant).delay()
    other = connections[OLD].copy()
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT 1")
        said: list[str] = []
        with pytest.raises(InvalidState, match="open transaction"):
            move_tenant(tenant, NEW, wait=0.5, max_stop=0.1, tell=said.append)
        noop.using(tenant=tenant).delay()
    finally:
        other.close()

    move_tenant(tenant, NEW)
    assert len(jobs(NEW)) == 2


def test_change_of_a_queue_after_the_close_is_noticed(tenant: str, monkeypatch: pytest.MonkeyPatch):
    noop.using(tenant=tenant).delay()
    move, carry, calls = moving._Move, moving._Move._carry, []

    def carry_late(self: Any, versions: dict[int, str]) -> bool:
        calls.append(versions)
        if len(calls) == 1:
            TenantQueue.objects.using(OLD).update(retired=False)
            noop.using(tenant=tenant).delay()
            TenantQueue.objects.using(OLD).update(retired=True)
        return carry(self, versions)

    monkeypatch.setattr(move, "_carry", carry_late)
    move_tenant(tenant, NEW)

    assert len(calls) == 2
    assert len(jobs(NEW)) == 2


def test_history_follows_in_batches(tenant: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(carrying, "BATCH", 3)
    noop.using(tenant=tenant).enqueue_many([()] * 10)
    with database(OLD):
        run_pending()

    move_tenant(tenant, NEW)

    assert jobs(OLD) == {}
    assert len(jobs(NEW)) == 10


def test_failed_job_is_retried_before_it_has_followed(tenant: str):
    job = fail.using(tenant=tenant, max_attempts=1).delay()
    with database(OLD):
        run_pending()
    stop_move(tenant, "follow")
    assert shard_of_id(job.pk) == OLD

    control.retry(job.pk)
    move_tenant(tenant, NEW)

    assert Job.objects.using(NEW).get().state == "ready"


def test_batch_that_is_in_both_databases_is_carried_once(
    tenant: str, monkeypatch: pytest.MonkeyPatch
):
    job = noop.using(tenant=tenant).delay()
    with database(OLD):
        run_pending()
    stop_move(tenant, "follow")
    carry = carrying.Carrier.carry_batch

    def die(self: Any, condition: Any) -> int:
        carry(self, condition)
        transaction.get_connection(NEW).connection.commit()
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(carrying.Carrier, "carry_batch", die)
        with pytest.raises(Killed):
            move_tenant(tenant, NEW)
    assert set(jobs(OLD)) == {job.pk}

    move_tenant(tenant, NEW)

    assert jobs(OLD) == {}
    assert set(jobs(NEW)) == {job.pk}


def test_jobs_are_enqueued_again_when_the_copy_fails(tenant: str, monkeypatch: pytest.MonkeyPatch):
    noop.using(tenant=tenant).delay()

    def fail_here(*args: Any) -> None:
        raise OperationalError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(carrying.Carrier, "carry_all", fail_here)
        with pytest.raises(OperationalError):
            move_tenant(tenant, NEW)
    assert noop.using(tenant=tenant).delay()._state.db == OLD
    assert counts(NEW, tenant) == {}

    move_tenant(tenant, NEW)

    assert len(jobs(NEW)) == 2


def test_mover_that_was_stopped_changes_nothing_after_the_tenant_has_moved_on(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "open")
    stopped = moving._Move(tenant, OLD, NEW, lambda text: None)
    move_tenant(tenant, NEW)
    move_tenant(tenant, OLD)
    before = counts(OLD, tenant)

    stopped.open()
    stopped.follow()
    stopped._finish()

    assert shard_of(tenant) == OLD
    assert counts(OLD, tenant) == before


def test_mover_that_was_stopped_leaves_a_move_back_alone(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "open")
    stopped = moving._Move(tenant, OLD, NEW, lambda text: None)
    move_tenant(tenant, NEW)
    stop_move(tenant, "_close", to=OLD)

    stopped.follow()
    stopped._finish()

    assert ShardMove.objects.using(NEW).get().queues
    move_tenant(tenant, OLD)
    assert states(OLD) == {"default": (False, False)}


def test_mover_that_waits_does_not_do_a_later_move_to_another_database(
    tenant: str, monkeypatch: pytest.MonkeyPatch
):
    noop.using(tenant=tenant).delay()

    def begin_another(self: Any) -> list[str]:
        ShardMove.objects.using(OLD).update(target=2)
        return []

    monkeypatch.setattr(moving._Move, "_blockers", begin_another)
    with pytest.raises(InvalidState, match="was cancelled"):
        move_tenant(tenant, NEW)

    assert jobs(NEW) == {}
    assert states(OLD) == {"default": (True, False)}
    assert ShardMove.objects.using(OLD).get().closed is False


def test_mover_says_that_its_move_was_cancelled(tenant: str, monkeypatch: pytest.MonkeyPatch):
    noop.using(tenant=tenant).delay()

    def cancel(self: Any) -> list[str]:
        assert cancel_move(tenant)
        return []

    monkeypatch.setattr(moving._Move, "_blockers", cancel)
    with pytest.raises(InvalidState, match="was cancelled by another process"):
        move_tenant(tenant, NEW)

    assert states(OLD) == {"default": (False, False)}


def test_mover_completes_a_move_that_another_one_has_switched(
    tenant: str, monkeypatch: pytest.MonkeyPatch
):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "_close")

    def overtake(self: Any) -> list[str]:
        monkeypatch.undo()
        stop_move(tenant, "open")
        return []

    monkeypatch.setattr(moving._Move, "_blockers", overtake)
    move_tenant(tenant, NEW)

    assert states(NEW) == {"default": (False, False)}
    assert not ShardMove.objects.using(NEW).exists()


def test_id_that_no_database_has_is_looked_for_in_the_one_that_is_down(down: str, tenant: str):
    job = noop.using(tenant=tenant).delay()
    Shard.objects.using(OLD).update(has_moves=True, version=F("version") + 1)
    forget_pins()

    assert shard_of_id(job.pk) == OLD
    assert shard_of_id(job.pk + 32) == down


def test_follow_ups_in_queues_of_other_tenants_are_waited_for(tenant: str):
    other = tenant_of(OLD, 1)
    job = echo.using(tenant=other, on_success=noop.using(tenant=tenant).call()).delay(1)

    with pytest.raises(InvalidState, match=f"job {job.pk} with follow-ups"):
        move_tenant(tenant, NEW, wait=0)
    with database(OLD):
        run_pending()
    move_tenant(tenant, NEW)

    assert len(jobs(NEW)) == 1
    assert set(jobs(OLD)) == {job.pk}


def test_own_jobs_with_follow_ups_of_others_are_refused_before_the_queues_are_paused(tenant: str):
    follow_up = noop.using(tenant=tenant_of(OLD, 1)).call()
    first = echo.using(tenant=tenant, on_success=follow_up)
    job = echo.using(tenant=tenant, on_end=first.call(2)).delay(1)

    with pytest.raises(InvalidState, match=f"another tenant: job {job.pk}"):
        move_tenant(tenant, NEW, wait=0)

    assert states(OLD)["default"] == (False, False)
    assert not ShardMove.objects.using(OLD).exists()
    with database(OLD):
        run_pending()
    move_tenant(tenant, NEW)


def test_own_jobs_with_follow_ups_of_others_that_come_later_end_the_wait(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "_close")
    follow_up = noop.using(tenant=tenant_of(OLD, 1)).call()
    job = echo.using(tenant=tenant, on_success=follow_up).delay(1)

    with pytest.raises(InvalidState, match=f"another tenant: job {job.pk}"):
        move_tenant(tenant, NEW, wait=0)

    assert cancel_move(tenant)


def test_arguments_of_follow_ups_are_no_queues(tenant: str):
    other = tenant_of(OLD, 1)
    noop.using(tenant=tenant).delay()
    queue = TenantQueue.objects.using(OLD).get(tenant=tenant)
    for name, queue_id in ((tenant, 987), (other, queue.pk)):
        echo.using(
            tenant=name, on_success=echo.using(tenant=name).call({"queue_id": queue_id})
        ).delay(1)

    move_tenant(tenant, NEW, wait=0)

    assert len(jobs(NEW)) == 2


def test_enqueue_that_saw_a_closed_queue_succeeds_after_the_end_of_the_move(
    tenant: str, monkeypatch: pytest.MonkeyPatch
):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "_carry")
    forget_queues()
    check = queues.check_queue

    def check_late(using: str, name: str) -> None:
        cancel_move(tenant)
        check(using, name)

    monkeypatch.setattr(queues, "check_queue", check_late)
    assert noop.using(tenant=tenant).delay()._state.db == OLD


def test_queue_that_is_closed_and_opened_between_the_statements_of_an_enqueue_takes_the_job(
    tenant: str, monkeypatch: pytest.MonkeyPatch
):
    noop.using(tenant=tenant).delay()
    found, retired = queues.queue_id_of, iter([True, True, False])

    def find(target: queues.Target, *, refresh: bool = False) -> int:
        row = TenantQueue.objects.using(OLD)
        row.update(retired=False)
        queue_id = found(target, refresh=refresh)
        row.update(retired=next(retired))
        return queue_id

    monkeypatch.setattr(enqueue, "queue_id_of", find)
    assert noop.using(tenant=tenant).delay()._state.db == OLD


# what is refused


def test_moves_that_cannot_be(tenant: str):
    noop.using(tenant=tenant).delay()
    with pytest.raises(InvalidState, match="nothing to move"):
        move_tenant(tenant, OLD)
    TenantQueue.objects.using(NEW).create(tenant=tenant, name="stray")
    with pytest.raises(InvalidState, match="has tenant queues in 'eu1', too"):
        move_tenant(tenant, NEW)
    TenantQueue.objects.using(NEW).all().delete()
    TenantQueue.objects.using(OLD).update(executor="celery")
    with pytest.raises(InvalidState, match="executor"):
        move_tenant(tenant, NEW)


@pytest.mark.skipif(not apps.is_installed("django_tenantqueue.contrib.schedules"), reason="app")
def test_tenant_with_a_schedule_in_the_target_is_not_moved(tenant: str):
    noop.using(tenant=tenant).delay()
    schedules = apps.get_model("tenantqueue_schedules", "Schedule").objects.using(NEW)
    stop_move(tenant, "_carry")
    stray = schedules.create(tenant=tenant, name="stray", task=noop.name, expression="0 0 * * *")

    with pytest.raises(InvalidState, match="has schedules in 'eu1', too"):
        move_tenant(tenant, NEW)
    assert cancel_move(tenant)
    assert schedules.get() == stray
    with pytest.raises(InvalidState, match="has schedules in 'eu1', too"):
        move_tenant(tenant, NEW)

    assert states(OLD) == {"default": (False, False)}


def entry(using: str, tenant: str, action: str, kind: str) -> Change:
    values = {"tenant": tenant, "action": action, "object_kind": kind, "source": "code"}
    return Change.objects.using(using).create(**values)


def entries(using: str) -> set[str]:
    return set(Change.objects.using(using).values_list("action", flat=True))


@pytest.mark.skipif(not apps.is_installed("django_tenantqueue.contrib.api"), reason="app")
def test_audit_entries_of_tokens_stay_in_the_first_database(tenant: str):
    noop.using(tenant=tenant).delay()
    token = apps.get_model("tenantqueue_api", "ApiToken")
    kind = next(kind for kind, model in models_by_kind().items() if model is token)
    entry(OLD, tenant, "revoke", kind)

    move_tenant(tenant, NEW)
    assert (entries(OLD), entries(NEW)) == ({"revoke"}, {"move"})
    move_tenant(tenant, OLD)

    assert (entries(OLD), entries(NEW)) == ({"revoke", "move"}, set())


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_audit_entries_of_the_target_stay(
    tenant: str, is_cancelled: bool, monkeypatch: pytest.MonkeyPatch
):
    noop.using(tenant=tenant).delay()
    entry(OLD, tenant, "tune", "queue")
    entry(NEW, tenant, "pause", "queue")
    with monkeypatch.context() as patch:
        kill(patch, "write_pin", of=moving)
        with pytest.raises(Killed):
            move_tenant(tenant, NEW)
    assert entries(NEW) == {"tune", "pause"}

    if is_cancelled:
        cancel_move(tenant)
        assert (entries(OLD), entries(NEW)) == ({"tune"}, {"pause"})
    else:
        move_tenant(tenant, NEW)
        assert (entries(OLD), entries(NEW)) == (set(), {"tune", "pause", "move"})


def test_status_and_list_name_moves_that_are_not_completed(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "_close")
    (problem,) = [
        found for found in read_report(using=OLD).problems if found.code == "move_not_completed"
    ]
    assert tenant in problem.text
    said = StringIO()
    call_command("tenantqueue", "shards", "list", stdout=said)
    assert f"move not completed: {tenant} → {NEW}" in said.getvalue()

    call_command("tenantqueue", "shards", "move", tenant, NEW, stdout=said)
    call_command("tenantqueue", "shards", "list", stdout=said)

    assert f"jobs of tenant {tenant!r} are enqueued and run in {NEW}" in said.getvalue()
    assert said.getvalue().count("not completed") == 1


def test_command_cancels_a_move(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "_close")

    call_command("tenantqueue", "shards", "move", tenant, "--cancel", stdout=StringIO())

    assert states(OLD) == {"default": (False, False)}
    with pytest.raises(CommandError, match="is not being moved"):
        call_command("tenantqueue", "shards", "move", tenant, "--cancel")
    with pytest.raises(CommandError, match="give the alias"):
        call_command("tenantqueue", "shards", "move", tenant)


def test_nothing_else_changes_the_database_of_a_moving_tenant(tenant: str):
    noop.using(tenant=tenant).delay()
    stop_move(tenant, "_close")

    with pytest.raises(InvalidState, match="being moved"):
        pin_tenant(tenant, OLD)
    with pytest.raises(InvalidState, match="being moved"):
        erase_tenant(tenant, using=OLD)
    with pytest.raises(InvalidState, match="being moved"):
        set_up(lambda text: None)


def test_tokens_stay_in_the_first_database():
    models = [model.__name__ for model in carrying.moved_tables()]

    assert ("ApiToken" in models, "Job" in models) == (False, True)
    assert ("IdempotencyKey" in models) == apps.is_installed("django_tenantqueue.contrib.api")
