"""manage.py tenantqueue routing"""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.models import Change
from tests.factories import make_queue

pytestmark = pytest.mark.django_db


def run(*args: str, **options: Any) -> str:
    out = io.StringIO()
    call_command("tenantqueue", "routing", *args, stdout=out, **options)
    return out.getvalue()


def test_routings_are_set_listed_and_removed() -> None:
    make_queue("acme", "heavy")

    assert run("set", "tests.*", "heavy", tenant="acme") == "acme  tests.* → heavy\n"
    run("set", "*", "default")
    run("set", "*", "default", tenant="")
    assert run("list", tenant="") == "(no tenant)  * → default\n"
    assert run("list").splitlines() == [
        "(no tenant)  * → default",
        "acme  tests.* → heavy",
        "(every tenant)  * → default",
    ]
    (found,) = json.loads(run("list", "--format=json", tenant="acme"))["routings"]
    row = Routing.objects.get(tenant="acme")
    assert found == {"id": row.pk, "tenant": "acme", "pattern": "tests.*", "queue": "heavy"}
    assert run("remove", "tests.*", tenant="acme") == "routing 'tests.*' was removed\n"
    run("remove", "*")
    with pytest.raises(CommandError, match=r"no routing '\*' of every tenant"):
        run("remove", "*")
    assert Routing.objects.get().tenant == ""
    run("remove", "*", tenant="")
    assert json.loads(run("list", "--format=json")) == {"routings": []}

    assert not Routing.objects.exists()
    assert set(Change.objects.values_list("source", flat=True)) == {"command"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["set", "x", "hevy"], "there is no queue 'hevy'"),
        (["set", "x"], "the following arguments are required: QUEUE"),
        (["list", "x"], "unrecognized arguments: x"),
        (["remove"], "the following arguments are required: PATTERN"),
        (["lst"], "there is no subcommand 'lst': did you mean 'list'?"),
        (["remove", "x"], "there is no routing 'x'"),
        (["set", " x", "default"], "Remove the spaces"),
    ],
)
def test_wrong_call_is_an_error(args: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=re.escape(message)):
        run(*args)
