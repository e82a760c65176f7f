"""Searchable arguments: how a task declares them, and what its jobs store of that."""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection

from django_tenantqueue import Placeholder, Unique, task
from django_tenantqueue.calls.arguments import decode_args
from django_tenantqueue.calls.unique_key import make_key
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.testing import run_pending
from tests.factories import make_job
from tests.sample_tasks import bills
from tests.testapp.tasks import noop


def declare(searchable: Any, **options: Any) -> Any:
    def send(invoice: Any, *rest: Any, copy: bool = False) -> None:
        """Do nothing."""

    return task(name="tests.declared", searchable=searchable, **options)(send)


@pytest.mark.parametrize(
    ("searchable", "told"),
    [
        (("invoce",), "names 'invoce', which is no parameter of it; did you mean 'invoice'?"),
        ("token", "names 'token', which is no parameter of it; it has invoice, rest, copy"),
        (True, "searchable=True must be names of the task's parameters"),
        ((1,), r"searchable=\(1,\) must be names"),
    ],
)
def test_a_wrong_name_is_an_error_at_declaration(searchable: Any, told: str) -> None:
    with pytest.raises(InvalidOption, match=f"tests.declared: .*{told}"):
        declare(searchable)


@pytest.mark.parametrize("secret", [True, "invoice"])
def test_a_secret_argument_cannot_be_searchable(secret: Any) -> None:
    with pytest.raises(InvalidOption, match="'invoice' is secret, so it cannot be searchable"):
        declare("invoice", secret=secret)


@pytest.mark.parametrize(
    ("args", "kwargs", "keys"),
    [
        ((4711,), {}, ["invoice=4711"]),
        ((), {"invoice": "A=1"}, ["invoice=A=1"]),
        (("é",), {"copy": True}, ["copy=true", "invoice=é"]),
        ((False, 1, "x", 1), {}, ["invoice=false", "rest=1", "rest=x"]),
        ((1.5,), {}, ["invoice=1.5"]),
        ((date(2026, 11, 24),), {}, ["invoice=2026-11-24"]),
        ((Decimal("1.50"),), {}, ["invoice=1.50"]),
        ((UUID(int=7),), {}, ["invoice=00000000-0000-0000-0000-000000000007"]),
        ((timedelta(hours=1),), {}, ["invoice=P0DT01H00M00S"]),
        ((None,), {}, None),
        (([1, 2],), {}, None),
        (({"a": 1},), {}, None),
        (("x" * 501,), {}, None),
        ((Placeholder("job_id"),), {}, None),
    ],
)
def test_stored_arguments_have_a_key_for_each_value(
    args: tuple[Any, ...], kwargs: dict[str, Any], keys: Any
) -> None:
    call = declare(("invoice", "rest", "copy")).call(*args, **kwargs)

    text = call.source.encode(call.args, call.kwargs)

    assert json.loads(text).get("search") == keys
    assert decode_args(text) == (list(args), kwargs)


@pytest.mark.django_db
def test_a_model_instance_is_found_by_its_primary_key() -> None:
    user = User.objects.create_user("ada")

    assert bills.delay(user).refresh().args["search"] == [f"invoice={user.pk}"]


def test_a_task_without_searchable_arguments_stores_nothing_more() -> None:
    call = noop.call()

    assert call.source.encode(call.args, call.kwargs) == '{"args":[]}'


def test_unique_key_does_not_change_when_an_argument_becomes_searchable() -> None:
    keys = set()
    for searchable in (None, "invoice"):
        source = declare(searchable).source
        text = source.encode((4711,), {})
        keys.add(make_key(Unique("until_executed"), source, "", (4711,), {}, text))

    assert len(keys) == 1


@pytest.mark.django_db
def test_every_way_to_enqueue_stores_the_keys() -> None:
    ids = [
        bills.delay(1).pk,
        *bills.enqueue_many([(2,), {"invoice": 3}]),
        bills.using(unique=Unique("until_executed"), session="one").delay(4).pk,
    ]
    monitor = ConcurrentJobMonitor.objects.start(
        "work", [bills.call(5)], parallel=1, on_end=bills.call(6)
    )
    followed = noop.using(on_success=bills.call(7)).delay()
    assert keys_of(ids) == {f"invoice={number}" for number in (1, 2, 3, 4)}

    run_pending()

    assert monitor.anchor_id is not None
    found = keys_of(Job.objects.filter(task=bills.name).values_list("pk", flat=True))
    assert found == {f"invoice={number}" for number in (1, 2, 3, 4, 5, 6, 7)}
    assert followed.refresh().final


def keys_of(ids: Any) -> set[str]:
    """Return the keys that have the index."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT jsonb_array_elements_text(args -> 'search') FROM tenantqueue_job "
            "WHERE id = ANY (%s)",
            [list(ids)],
        )
        return {key for (key,) in cursor.fetchall()}


@pytest.mark.django_db
def test_other_jobs_have_no_keys() -> None:
    job = make_job()

    with connection.cursor() as cursor:
        cursor.execute("SELECT args -> 'search' FROM tenantqueue_job WHERE id = %s", [job.pk])
        assert cursor.fetchone() == (None,)
