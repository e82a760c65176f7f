"""Which database a tenant and an id belong to: hashes, pins, setup."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from io import StringIO
from time import monotonic
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connections, transaction
from django.test import override_settings

from django_tenantqueue import control
from django_tenantqueue.batch_sizes import REMEMBERED_SECONDS
from django_tenantqueue.conf import database, settings_of
from django_tenantqueue.contrib.shards import routes, services, setup
from django_tenantqueue.contrib.shards.control import (
    list_pins,
    pin_tenant,
    shard_of,
    shard_of_id,
    unpin_tenant,
)
from django_tenantqueue.contrib.shards.models import Shard, ShardPin
from django_tenantqueue.contrib.shards.routes import FIRST_ID, forget_pins, ranking_of
from django_tenantqueue.contrib.shards.settings import MOST, ShardSettings
from django_tenantqueue.contrib.shards.setup import set_up
from django_tenantqueue.exceptions import InvalidOption, InvalidState, Unsupported
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.testing import run_pending
from tests.contrib.shards.conftest import ALIASES, sharded, tenant_of
from tests.testapp.tasks import noop


def test_hash_never_changes_and_spreads_tenants():
    assert [ranking_of(tenant, 3)[0] for tenant in ("acme", "globex", "é")] == [1, 1, 0]
    counts = Counter(ranking_of(f"tenant{n}", 4)[0] for n in range(4000))
    assert all(900 < count < 1100 for count in counts.values()), counts


def test_another_database_takes_over_its_share_alone():
    tenants = [f"tenant{n}" for n in range(3000)]
    moved = {t: ranking_of(t, 4)[0] for t in tenants if ranking_of(t, 4)[0] != ranking_of(t, 3)[0]}

    assert set(moved.values()) == {3}
    assert 650 < len(moved) < 850


@pytest.mark.parametrize(
    ("row_id", "number"),
    [
        (1, 0),
        (FIRST_ID - 1, 0),
        (FIRST_ID, 0),
        (FIRST_ID + 1, 1),
        (FIRST_ID + MOST + 1, 1),
        (2**53 - MOST + 1, 1),
    ],
)
def test_id_names_its_database(row_id: int, number: int):
    with override_settings(TENANTQUEUE=sharded("a", "b")):
        assert shard_of_id(row_id) == ["a", "b"][number]


def test_id_of_an_unknown_database_is_refused():
    with (
        override_settings(TENANTQUEUE=sharded("a", "b")),
        pytest.raises(Unsupported, match="is of shard 2"),
    ):
        shard_of_id(FIRST_ID + 2)


def make_queue(tenant: str, name: str, alias: str) -> None:
    TenantQueue.objects.using(alias).create(tenant=tenant, name=name)


@pytest.mark.parametrize("aliases", [["a", "a"], [f"a{n}" for n in range(MOST + 1)]])
def test_aliases_are_refused_when_repeated_or_too_many(aliases: list[str]):
    with (
        override_settings(TENANTQUEUE={"SHARDS": {"DATABASES": aliases}}),
        pytest.raises(InvalidOption, match="different aliases"),
    ):
        settings_of(ShardSettings)


@pytest.mark.django_db
def test_app_does_nothing_without_shards():
    job = noop.using(tenant="acme").delay()

    assert shard_of("acme") == shard_of_id(FIRST_ID + 5) == job._state.db == "default"
    assert job.pk < FIRST_ID
    with pytest.raises(Unsupported, match="fewer than two aliases: add"):
        pin_tenant("acme", "default")


@pytest.mark.usefixtures("schemas")
def test_enqueue_is_refused_before_the_setup():
    with pytest.raises(Unsupported, match="is not set up as a shard: run"):
        noop.using(tenant="acme").delay()


@pytest.mark.usefixtures("shards")
def test_flush_of_a_test_is_named_where_the_setup_is_missing():
    call_command("flush", database="eu1", interactive=False, verbosity=0)

    with pytest.raises(Unsupported, match=r"needs it in setUp\(\), for each test"):
        noop.using(tenant=tenant_of("eu1")).delay()


@pytest.mark.usefixtures("schemas")
def test_setup_keeps_ids_and_tenants_and_can_be_repeated():
    kept, moved = tenant_of("us0"), tenant_of("eu1")
    with override_settings(TENANTQUEUE={"DATABASE": "us0"}):
        old = [noop.using(tenant=tenant).delay() for tenant in (kept, moved)]
    said: list[str] = []

    set_up(said.append)
    job = noop.using(tenant=moved).delay()
    set_up(said.append)
    after = noop.using(tenant=moved).delay()
    other = noop.using(tenant=tenant_of("eu1", 1)).delay()

    assert [shard_of_id(one.pk) for one in old] == [shard_of(kept), shard_of(moved)]
    assert (shard_of(moved), list_pins()) == ("us0", {moved: "us0"})
    assert [job.pk, after.pk] == [FIRST_ID, FIRST_ID + MOST]
    assert other.pk == FIRST_ID + 1
    assert old[0].refresh().state == "ready"
    assert said[0].startswith("us0: shard 0, 1 pinned tenants, ")
    assert said[3] == "eu1: shard 1, 1 pinned tenants, 0 sequences changed"


@pytest.mark.usefixtures("schemas")
def test_setup_refuses_a_database_with_jobs_of_its_own():
    with override_settings(TENANTQUEUE={"DATABASE": "eu1"}):
        noop.using(tenant="acme").delay()

    with pytest.raises(InvalidState, match="the database 'eu1' has jobs already"):
        set_up(print)

    assert not Shard.objects.using("us0").exists()


def locked_for(monkeypatch: pytest.MonkeyPatch, pauses: int) -> list[float]:
    """Have a transaction that has taken an id, and ends after so many tries of the setup."""
    slept: list[float] = []
    other = connections["us0"].copy()
    other.connect()
    other.connection.autocommit = False
    other.connection.execute("SELECT nextval('tenantqueue_job_id_seq')")

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == pauses:
            other.close()

    monkeypatch.setattr(setup.time, "sleep", sleep)
    return slept


@pytest.mark.usefixtures("schemas")
def test_setup_waits_shortly_for_a_transaction_and_tries_again(monkeypatch: pytest.MonkeyPatch):
    slept = locked_for(monkeypatch, 2)

    set_up(lambda text: None)

    assert slept == [setup.PAUSE_SECONDS] * 2
    assert noop.using(tenant=tenant_of("us0")).delay().pk == FIRST_ID


@pytest.mark.usefixtures("schemas")
def test_setup_names_the_sequence_that_stays_locked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(setup, "TRIES", 2)
    slept = locked_for(monkeypatch, 2)
    try:
        with pytest.raises(Unsupported, match="tenantqueue_job_id_seq of the database 'us0' is"):
            set_up(lambda text: None)
    finally:
        setup.time.sleep(0)

    assert len(slept) == 2
    set_up(lambda text: None)


@pytest.mark.usefixtures("shards")
def test_databases_in_another_order_are_refused():
    with override_settings(TENANTQUEUE=sharded(*reversed(ALIASES))):
        forget_pins()
        with pytest.raises(Unsupported, match="keep the order"):
            noop.using(tenant="acme").delay()
        with pytest.raises(InvalidState, match="keep the order"):
            set_up(print)


@pytest.mark.usefixtures("shards")
def test_setup_refuses_sequences_of_another_shard():
    Shard.objects.using("eu1").delete()
    with connections["eu1"].cursor() as cursor:
        cursor.execute("SELECT setval('tenantqueue_job_id_seq', %s)", [FIRST_ID + 2])

    with pytest.raises(InvalidState, match="gives ids of shard 2"):
        set_up(print)


@pytest.mark.usefixtures("shards")
def test_setup_names_tenants_with_queues_in_two_databases():
    tenant, said = tenant_of("eu1"), []
    with override_settings(TENANTQUEUE={"DATABASE": "us0"}):
        noop.using(tenant=tenant).delay()
    noop.using(tenant=tenant).delay()

    set_up(said.append)

    assert said[0] == (
        f"tenant {tenant!r} has rows in us0, eu1: new jobs go to eu1, and the others still run"
    )


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("alias", ALIASES)
def test_pinned_tenant_is_in_its_database_until_it_is_unpinned(alias: str):
    tenant = tenant_of(next(other for other in ALIASES if other != alias))

    pin_tenant(tenant, alias)

    assert (shard_of(tenant), list_pins()) == (alias, {tenant: alias})
    copies = [list(ShardPin.objects.using(one).values_list("tenant", "shard")) for one in ALIASES]
    assert copies == [[(tenant, ALIASES.index(alias))]] * 2
    assert noop.using(tenant=tenant).delay()._state.db == alias
    with pytest.raises(InvalidState, match="is chosen before its first job"):
        unpin_tenant(tenant)
    Job.objects.using(alias).delete()
    with connections[alias].cursor() as cursor:
        cursor.execute("DELETE FROM tenantqueue_tenantqueue")
    assert unpin_tenant(tenant)
    assert not unpin_tenant(tenant)
    assert shard_of(tenant) != alias


@pytest.mark.usefixtures("shards")
def test_pin_waits_until_no_process_uses_what_it_read_before(monkeypatch: pytest.MonkeyPatch):
    """Jobs of the tenant may follow at once: no process takes the database of its hash for it."""
    waits: list[float] = []
    monkeypatch.setattr(services.time, "sleep", waits.append)

    pin_tenant(tenant_of("us0"), "eu1")
    unpin_tenant(tenant_of("us0"))

    assert waits == [REMEMBERED_SECONDS] * 2


@pytest.mark.usefixtures("shards")
def test_pin_is_refused_inside_a_transaction():
    with transaction.atomic(using="eu1"), pytest.raises(Unsupported, match="open in 'eu1'"):
        pin_tenant(tenant_of("us0"), "eu1")


@pytest.mark.usefixtures("shards")
def test_pins_are_refused_where_they_would_split_a_tenant():
    tenant = tenant_of("us0")
    noop.using(tenant=tenant).delay()

    with pytest.raises(InvalidState, match="has tenant queues in the database 'us0'"):
        pin_tenant(tenant, "eu1")
    with pytest.raises(InvalidOption, match="'mars' is not in"):
        pin_tenant("new", "mars")
    with pytest.raises(InvalidOption, match="jobs without a tenant are in the first"):
        pin_tenant("", "eu1")


@pytest.mark.usefixtures("shards")
def test_pin_is_refused_for_a_tenant_with_a_limit_in_another_database():
    tenant = tenant_of("us0")
    control.limit_user(tenant, "7", 1)

    with pytest.raises(InvalidState, match="has sessions in the database 'us0'"):
        pin_tenant(tenant, "eu1")


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("is_split", [False, True])
def test_pin_is_taken_back_when_jobs_came_meanwhile(
    monkeypatch: pytest.MonkeyPatch, is_split: bool
):
    tenant = tenant_of("us0")

    write = services.write_pin

    def enqueue_first(*args: Any) -> None:
        monkeypatch.setattr(services, "write_pin", write)
        for alias in ALIASES if is_split else ["us0"]:
            make_queue(tenant, "default", alias)
        write(*args)

    monkeypatch.setattr(services, "write_pin", enqueue_first)

    with pytest.raises(InvalidState, match="has tenant queues in the database 'us0'"):
        pin_tenant(tenant, "eu1")

    assert list_pins() == ({tenant: "eu1"} if is_split else {})


@pytest.mark.usefixtures("shards")
def test_connection_that_was_lost_is_opened_again_to_read_the_pins():
    tenant = tenant_of("us0")
    assert shard_of(tenant) == "us0"
    with connections["eu1"].cursor() as cursor:
        lost = connections["us0"].connection.info.backend_pid
        cursor.execute("SELECT pg_terminate_backend(%s)", [lost])
    ShardPin.objects.using("eu1").create(tenant=tenant, shard=1)
    seen = []
    for _ in "ab":
        routes._known["us0"].until = 0
        seen.append(shard_of(tenant))
        seen.append(routes._known["us0"].until - monotonic() < REMEMBERED_SECONDS)

    assert seen == ["us0", False, "us0", True], "read again"


@pytest.mark.usefixtures("shards")
def test_pins_are_read_once_a_second(monkeypatch: pytest.MonkeyPatch):
    now, reads, read = [100.0], [], routes._read
    monkeypatch.setattr(routes, "monotonic", lambda: now[0])
    monkeypatch.setattr(routes, "_read", lambda *args: (reads.append(args[0]), read(*args))[1])
    tenant = tenant_of("eu1")

    for moment in (100.0, 100.9, 101.1, 101.2):
        now[0] = moment
        assert shard_of(tenant) == "eu1"

    assert reads == ["eu1", "eu1"]
    assert routes._known["eu1"].version == Shard.objects.using("eu1").get().version


@pytest.mark.usefixtures("shards")
def test_pins_of_another_process_are_seen_when_their_version_is_new():
    tenant = tenant_of("us0")
    assert shard_of(tenant) == "us0"
    ShardPin.objects.using("us0").create(tenant=tenant, shard=1)
    routes._known["us0"].until = 0
    assert shard_of(tenant) == "us0", "the version is the same"
    Shard.objects.using("us0").update(version=99)
    routes._known["us0"].until = 0
    assert shard_of(tenant) == "eu1"


def test_database_that_is_down_harms_its_tenants_alone(down: str):
    for alias in ALIASES:
        assert noop.using(tenant=tenant_of(alias)).delay()._state.db == alias
    with pytest.raises(OperationalError):
        noop.using(tenant=tenant_of(down)).delay()
    with pytest.raises(Unsupported, match="'ap2' cannot be used"):
        pin_tenant("new", "eu1")


def test_pinned_tenant_is_found_while_the_database_of_its_hash_is_down(down: str):
    tenant = tenant_of(down)
    for alias in ALIASES:
        ShardPin.objects.using(alias).create(tenant=tenant, shard=1)

    assert noop.using(tenant=tenant).delay()._state.db == "eu1"


@pytest.mark.usefixtures("shards")
def test_pins_that_were_read_last_count_while_their_database_is_down(
    monkeypatch: pytest.MonkeyPatch,
):
    tenant = tenant_of("us0")
    pin_tenant(tenant, "eu1")
    assert shard_of(tenant) == "eu1"

    def refuse(*args: object) -> None:
        raise OperationalError("down")

    monkeypatch.setattr(routes, "_read", refuse)
    routes._known["us0"].until = 0

    assert shard_of(tenant) == "eu1"
    assert not routes._known["us0"].error


@pytest.mark.usefixtures("shards")
def test_current_database_ends_with_its_block():
    with database("eu1"):
        with database(None):
            assert Job.objects.db == "eu1"
        assert Job.objects.db == "eu1"
    assert Job.objects.db == "us0"


@pytest.mark.usefixtures("schemas")
def test_shards_are_set_up_inside_of_a_test_case():
    with ExitStack() as stack:
        for alias in ALIASES:
            block = transaction.atomic(using=alias)
            block._from_testcase = True
            stack.enter_context(block)

        call_command("tenantqueue", "shards", "setup", stdout=StringIO())
        pin_tenant("new", "eu1")
        job = noop.using(tenant="new").delay()
        with database("eu1"):
            run_pending()

        assert (job._state.db, job.refresh().state) == ("eu1", "success")
        for alias in ALIASES:
            transaction.set_rollback(True, using=alias)

    assert not Shard.objects.using("us0").exists()
