"""New jobs go to the database of their tenant, and are found by their ids."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.test import Client, override_settings
from django.urls import reverse

from django_tenantqueue import ConcurrentJobMonitor, control, group, task, use_tenant
from django_tenantqueue.conf import database, get_settings
from django_tenantqueue.contrib.shards.control import shard_of, shard_of_id
from django_tenantqueue.contrib.shards.routes import FIRST_ID
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption, JobNotFound, Unsupported
from django_tenantqueue.link_tokens import sign_job_id
from django_tenantqueue.models import Job, Session, TenantQueue
from django_tenantqueue.reports import read_loads
from django_tenantqueue.testing import assert_enqueued, captured_jobs, run_pending, travel
from tests.contrib.shards.conftest import ALIASES, sharded, tenant_of
from tests.contrib.shards.tasks import pass_on, where
from tests.databases import other_database
from tests.testapp.tasks import add, echo, fail, noop

try:
    from django.tasks import default_task_backend
    from django.tasks import task as django_task
    from django.tasks.exceptions import TaskResultDoesNotExist
except ImportError:  # before Django 6.0
    from django_tasks import default_task_backend
    from django_tasks import task as django_task
    from django_tasks.exceptions import TaskResultDoesNotExist

pytestmark = pytest.mark.usefixtures("shards")


@django_task
def plus(first: int, second: int) -> int:
    return first + second


def places() -> dict[str, int]:
    return {alias: Job.objects.using(alias).count() for alias in ALIASES}


@pytest.mark.parametrize("alias", ALIASES)
def test_job_is_in_the_database_of_its_tenant_and_its_id_names_it(alias: str):
    tenant = tenant_of(alias)

    job = add.using(tenant=tenant).delay(1, 2)

    assert places() == {**dict.fromkeys(ALIASES, 0), alias: 1}
    assert shard_of(tenant) == shard_of_id(job.pk) == job._state.db == alias
    assert FIRST_ID <= job.pk < 2**53
    with database(alias):
        run_pending()
    assert job.refresh().result == 3
    assert Job.objects.db_manager(alias).get(pk=job.pk).queue.tenant == tenant


@pytest.mark.parametrize("alias", ALIASES)
def test_all_ways_to_enqueue_find_the_database(alias: str):
    tenant = tenant_of(alias)

    echo.using(tenant=tenant).enqueue_many([(n,) for n in range(3)])
    async_to_sync(echo.using(tenant=tenant).adelay)(1)
    with use_tenant(tenant):
        noop.delay()
        group([echo.call(n) for n in range(2)]).delay(on_end=noop.call())
    monitor = ConcurrentJobMonitor.objects.start("one", [noop.call()], parallel=1, tenant=tenant)
    monitor.add([noop.call()])
    monitor.close()
    add.using(tenant=tenant, session="s", on_success=echo.call(1)).delay(1, 2)

    assert places() == {**dict.fromkeys(ALIASES, 0), alias: 3 + 1 + 1 + 3 + 3 + 1}
    with database(alias):
        run_pending()
    assert not Job.objects.using(alias).exclude(state="success").exists()
    assert monitor.progress().done == monitor.details().count() == 2
    assert monitor._state.db == alias


def test_job_without_a_tenant_is_in_the_first_database():
    with database("eu1"):
        noop.delay()

    assert places() == {"us0": 1, "eu1": 0}


@pytest.mark.parametrize("alias", ALIASES)
def test_verbs_find_the_database_by_ids_rows_and_tenants(alias: str):
    tenant = tenant_of(alias)
    job = fail.using(tenant=tenant, max_attempts=1).delay()
    queue = TenantQueue.objects.using(alias).get(tenant=tenant)
    with database(alias):
        run_pending()

    assert control.retry(job.pk).changed == [job.pk]
    assert control.cancel(Job.objects.using(alias).get(pk=job.pk)).changed == [job.pk]
    assert control.enqueue_again(job.pk)._state.db == alias
    assert control.pause(queue).changed == [queue.pk]
    assert control.resume(tenant=tenant).changed == [queue.pk]
    assert control.tune(queue="default", tenant=tenant, num_slots=3).changed == [queue.pk]
    assert control.make_queue(tenant, "mail")._state.db == alias
    assert control.limit_user(tenant, "7", 1)._state.db == alias
    bulk = control.bulk("cancel", {"tenant": tenant})
    assert bulk._state.db == alias
    with database(alias):
        run_pending()
    assert bulk.refresh().state == "success"


def test_call_about_several_databases_is_refused():
    jobs = [noop.using(tenant=tenant_of(alias)).delay() for alias in ALIASES]

    with pytest.raises(InvalidOption, match="rows of the databases 'eu1', 'us0': call it once"):
        control.cancel([job.pk for job in jobs])
    with pytest.raises(InvalidOption, match=r"is about rows of one database.*give using="):
        control.pause(queue="default")
    with pytest.raises(InvalidOption, match="give using="):
        control.bulk("cancel", None)
    assert control.bulk("cancel", None, using="eu1")._state.db == "eu1"
    for alias in ALIASES:
        assert len(control.pause(queue="default", using=alias).changed) == 1
    with database("eu1"):
        assert len(control.resume(queue="default").changed) == 1


def test_ids_of_queues_and_workers_name_no_database():
    """Each database counts them from 1: the same id is another tenant's queue elsewhere."""
    for alias in ALIASES:
        noop.using(tenant=tenant_of(alias)).delay()
    queue = TenantQueue.objects.using("eu1").get(tenant=tenant_of("eu1"))

    for call in (
        lambda: control.pause(queue=queue.pk),
        lambda: control.tune(queue=[queue.pk], num_slots=1),
        lambda: control.stop(queue.pk),
        lambda: read_loads([queue.pk]),
    ):
        with pytest.raises(InvalidOption, match="give using="):
            call()
    assert control.pause(queue=queue.pk, using="eu1").changed == [queue.pk]
    assert not TenantQueue.objects.using("us0").filter(paused=True).exists()


def test_queryset_names_its_database_alone():
    jobs = {alias: noop.using(tenant=tenant_of(alias)).delay() for alias in ALIASES}

    with pytest.raises(InvalidOption, match="give using="):
        control.cancel(Job.objects.unfinished())
    assert control.cancel(Job.objects.using("eu1").unfinished()).changed == [jobs["eu1"].pk]
    with database("us0"):
        assert control.cancel(Job.objects.unfinished()).changed == [jobs["us0"].pk]


def test_queue_and_limit_are_refused_outside_of_the_tenants_database():
    there = tenant_of("eu1")

    with pytest.raises(InvalidOption, match="give using='eu1'"):
        control.make_queue(there, "mail", using="us0")
    with pytest.raises(InvalidOption, match="give using='eu1'"):
        control.limit_user(there, "7", 1, using="us0")


def test_chain_to_a_tenant_of_another_database_is_refused():
    here, there = map(tenant_of, ALIASES)
    then = noop.using(tenant=there).call()

    with pytest.raises(InvalidArgument, match=f"tenant {there!r} would be in the database 'eu1'"):
        noop.using(tenant=here, on_success=then).delay()

    noop.using(tenant=here, on_success=noop.using(tenant=tenant_of("us0", 1)).call()).delay()
    assert places() == {"us0": 1, "eu1": 0}


def test_enqueue_in_a_transaction_of_another_database_is_refused_until_its_commit():
    tenant = tenant_of("eu1")

    with transaction.atomic(using="us0"):
        with pytest.raises(Unsupported, match=r"is open in 'us0'.*transaction\.on_commit"):
            noop.using(tenant=tenant).delay()
        transaction.on_commit(lambda: noop.using(tenant=tenant).delay(), using="us0")
        assert places()["eu1"] == 0
    assert places()["eu1"] == 1
    with transaction.atomic(using="eu1"):
        noop.using(tenant=tenant).delay()
        transaction.set_rollback(True, using="eu1")
    assert places()["eu1"] == 1


def test_enqueue_in_a_transaction_of_another_database_is_refused_in_a_test_case():
    tenant = tenant_of("eu1")
    with ExitStack() as stack:
        for alias in ALIASES:
            block = transaction.atomic(using=alias)
            block._from_testcase = True
            stack.enter_context(block)
        noop.using(tenant=tenant).delay()
        with (
            transaction.atomic(using="us0"),
            pytest.raises(Unsupported, match="is open in 'us0'"),
        ):
            noop.using(tenant=tenant).delay()
        with transaction.atomic(using="us0"), transaction.atomic(using="eu1"):
            noop.using(tenant=tenant).delay()
        for alias in ALIASES:
            transaction.set_rollback(True, using=alias)


def test_job_is_not_enqueued_again_in_a_transaction_of_another_database():
    job = noop.using(tenant=tenant_of("eu1")).delay()

    with transaction.atomic(using="us0"), pytest.raises(Unsupported, match="is open in 'us0'"):
        control.enqueue_again(job.pk)


def test_call_with_no_rows_changes_nothing():
    assert control.cancel([]).changed == []
    assert control.cancel(Job.objects.none()).changed == []
    assert control.pause(queue=[]).changed == []


def test_session_is_made_in_the_database_of_its_tenant_alone():
    tenant = tenant_of("eu1")

    with pytest.raises(InvalidOption, match="give using='eu1'"):
        control.pause(session="s", tenant=tenant, using="us0")

    assert len(control.pause(session="s", tenant=tenant).changed) == 1
    assert not Session.objects.using("us0").exists()


def test_atomic_task_is_refused_where_its_rows_are_elsewhere(own_tasks: dict[str, Any]):
    @task(atomic=True, name="tests.transfer")
    def transfer() -> str:
        return get_settings().database

    with pytest.raises(Unsupported, match="transfer is atomic, and the jobs of tenant"):
        transfer.using(tenant=tenant_of("eu1")).delay()
    with pytest.raises(Unsupported, match="is atomic"):
        group([transfer.call()]).using(tenant=tenant_of("eu1")).delay()
    transfer.using(tenant=tenant_of("us0")).delay()
    with override_settings(TENANTQUEUE=sharded(*ALIASES, ROWS_FOLLOW_JOBS=True)):
        job = transfer.using(tenant=tenant_of("eu1")).delay()
        with database("eu1"):
            run_pending()
        assert job.refresh().result == "eu1"


@pytest.mark.parametrize("alias", ALIASES)
def test_django_tasks_find_their_results(alias: str):
    result = plus.using(tenant=tenant_of(alias)).enqueue(1, 2)

    assert shard_of_id(int(result.id)) == alias
    with database(alias):
        run_pending()
    assert default_task_backend.get_result(result.id).return_value == 3


@pytest.mark.urls("tests.contrib.shards.urls")
@pytest.mark.parametrize("alias", ALIASES)
def test_status_links_find_their_jobs(client: Client, alias: str):
    jobs = [noop.using(tenant=tenant_of(one)).delay() for one in (alias, *ALIASES)]

    answer = client.get(jobs[0].status_url)
    many = client.get(reverse("tenantqueue:statuses"), {"token": [sign_job_id(j.pk) for j in jobs]})

    assert answer.json()["state"] == "ready"
    assert [entry["job"]["id"] for entry in many.json()["jobs"]] == [job.pk for job in jobs]


@pytest.mark.urls("tests.contrib.shards.urls")
def test_statuses_of_other_databases_are_read_while_one_is_down(down: str, client: Client):
    job = noop.using(tenant=tenant_of("eu1")).delay()
    tokens = [sign_job_id(pk) for pk in (job.pk, FIRST_ID + 2, FIRST_ID + 33)]

    many = client.get(reverse("tenantqueue:statuses"), {"token": tokens})
    one = client.get(reverse("tenantqueue:status", args=[tokens[1]]))

    told = [(entry["job"] and entry["job"]["id"], entry["error"]) for entry in many.json()["jobs"]]
    unread = "the database of the job cannot be read now"
    assert told == [
        (job.pk, None),
        (None, unread),
        (None, "no such job, or the link has expired"),
    ]
    assert [entry.get("retry") for entry in many.json()["jobs"]] == [None, True, None]
    assert (one.status_code, one.json()) == (503, {"error": unread})
    assert one["Retry-After"] == many["Retry-After"] == "1"


@pytest.mark.urls("tests.contrib.shards.urls")
def test_job_of_an_unknown_database_does_not_exist(client: Client):
    unknown = FIRST_ID + 31

    assert client.get(reverse("tenantqueue:status", args=[sign_job_id(unknown)])).status_code == 404
    with pytest.raises(JobNotFound):
        Job(pk=unknown).refresh()
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(str(unknown))
    assert control.cancel(unknown).changed == []


def test_row_that_was_read_from_a_replica_is_changed_in_its_primary():
    tenant = tenant_of("eu1")
    job = noop.using(tenant=tenant).delay()
    replica = {**connections.settings["eu1"], "TEST": {"MIRROR": "eu1"}}
    with other_database("eu1_replica", replica):
        rows = Job.objects.using("eu1_replica")
        read = rows.get(pk=job.pk)
        queue = TenantQueue.objects.using("eu1_replica").get(tenant=tenant)

        assert queue.pk == read.queue.pk
        assert control.cancel(read).changed == [job.pk]
        assert control.pause(queue).changed == [queue.pk]
        assert control.retry(rows).changed == [job.pk]


def test_helpers_for_tests_look_at_all_databases():
    here, there = map(tenant_of, ALIASES)
    with captured_jobs() as jobs:
        for tenant in (there, here):
            noop.using(tenant=tenant).delay()
    later = echo.using(tenant=there, run_at=timedelta(hours=1)).delay(1)

    assert [job.tenant for job in jobs] == [here, there]
    assert assert_enqueued(echo, 1).pk == later.pk
    with database("us0"), pytest.raises(AssertionError, match="No job matches"):
        assert_enqueued(echo, 1)
    assert [job.tenant for job in run_pending()] == [here, there]
    with travel(timedelta(hours=2)):
        assert [job.pk for job in run_pending()] == [later.pk]


def test_jobs_that_jobs_of_other_databases_enqueue_are_run_in_tests():
    pass_on.using(tenant=tenant_of("eu1")).delay(tenant_of("us0"), tenant_of("eu1"))

    ran = run_pending()

    assert [job.state for job in ran] == ["success"] * 4
    places = {job.tenant: job.result for job in ran if job.task == where.name}
    assert places == {
        "": ["", "us0"],
        **{tenant_of(alias): [tenant_of(alias), alias] for alias in ALIASES},
    }
    pass_on.using(tenant=tenant_of("eu1")).delay(tenant_of("us0"))
    with pytest.raises(RuntimeError, match="has run 1 jobs"):
        run_pending(limit=1)


def test_enqueue_opens_no_other_database():
    for alias in ALIASES:
        connections[alias].close()

    noop.using(tenant=tenant_of("eu1")).delay()

    assert connections["us0"].connection is None
