"""Secret arguments: how a task declares them, and what its jobs store of that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from django_tenantqueue import Unique, task
from django_tenantqueue.calls.arguments import decode_args
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.testing import run_pending
from tests.sample_tasks import keeps_all_secret, signs_in, takes_any


def declare(secret: Any) -> Any:
    def send(user: str, password: str = "") -> None:
        """Do nothing."""

    return task(name="tests.declared", secret=secret)(send)


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        (("pasword",), "names 'pasword', which is no parameter of it; did you mean 'password'?"),
        ("token", "names 'token', which is no parameter of it; it has user, password"),
        (5, "secret=5 must be True, or names of the task's parameters"),
        ((1,), r"secret=\(1,\) must be True, or names"),
        ({"password": True}, "must be True, or names"),
    ],
)
def test_a_wrong_name_is_an_error_at_declaration(secret: Any, told: str) -> None:
    with pytest.raises(InvalidOption, match=f"tests.declared: .*{told}"):
        declare(secret)


@pytest.mark.parametrize("secret", [None, False, ()])
def test_nothing_is_secret_without_names(secret: Any) -> None:
    assert declare(secret).source.secret is None


def test_one_name_may_stand_without_a_tuple() -> None:
    assert declare("password").source.secret.names == {"password"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (signs_in.call("ada", "pw"), [1]),
        (signs_in.call("ada", password="pw", card="41"), ["card", "password"]),
        (signs_in.call("ada", "pw", card="41", remember=True), [1, "card"]),
        (keeps_all_secret.call(1), True),
        (takes_any.call("a", "b", "c", x="y"), [1, 2, "x"]),
        (takes_any.call("a"), None),
    ],
)
def test_stored_arguments_say_which_are_secret(call: Any, said: Any) -> None:
    stored = json.loads(call.source.encode(call.args, call.kwargs))

    assert stored.get("secret") == said
    assert decode_args(json.dumps(stored)) == (list(call.args), dict(call.kwargs))


@pytest.mark.django_db
def test_every_way_to_enqueue_stores_what_is_secret() -> None:
    job = signs_in.delay("ada", "pw")
    ids = signs_in.enqueue_many([("bob", "pw"), {"user": "eve", "password": "pw"}])
    unique = signs_in.using(unique=Unique("until_executed")).delay("ada", "pw")
    monitor = ConcurrentJobMonitor.objects.start(
        "work", [signs_in.call("ada", "pw")], parallel=1, on_end=signs_in.call("ada", "pw")
    )

    said = [Job.objects.get(pk=pk).args["secret"] for pk in (job.pk, *ids, unique.pk)]
    assert said == [[1], [1], ["password"], [1]]
    of_monitor = Job.objects.filter(task=signs_in.name, pk__gt=unique.pk)
    assert monitor.anchor_id in {job.pk for job in of_monitor}
    assert [job.args.get("secret") for job in of_monitor] == [[1], [1]]


@pytest.mark.django_db(transaction=True)
def test_job_with_secret_arguments_runs_with_them() -> None:
    job = keeps_all_secret.delay("value")

    run_pending()

    assert job.refresh().result == "value"


@pytest.mark.django_db
def test_key_of_a_unique_job_is_the_same_with_secret_arguments() -> None:
    plain = declare(None).using(unique=Unique("until_executed"), tenant="acme")
    before = plain.delay("ada", "pw")
    secret = declare(("password",)).using(unique=Unique("until_executed"), tenant="acme")

    after = secret.delay("ada", "pw")

    assert after.duplicate
    assert after.pk == before.pk
