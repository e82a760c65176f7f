"""manage.py tenantqueue mute and unmute, and what status says of muted problems."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_tenantqueue.models import Change, Mute
from tests.factories import make_job, make_queue, make_worker

pytestmark = pytest.mark.django_db
REASON = "--reason=the import of May"


def run(*arguments: Any) -> str:
    out = StringIO()
    call_command("tenantqueue", *arguments, stdout=out)
    return out.getvalue()


def test_problem_is_muted_and_unmuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "deploy")
    make_worker()
    make_job(make_queue("acme", "mail", paused=True))
    line = "ready jobs in paused queues, or in queues without slots: acme/mail"
    assert f"! {line}" in run("status")

    said = run("mute", "queue_paused", "--tenant=acme", "--name=mail", "--for=2d", REASON)

    until = f"{timezone.localtime(Mute.objects.get().until):%Y-%m-%d %H:%M %Z}"
    assert said == f"acme / mail: queue_paused: muted until {until}\n"
    status = run("status")
    assert f"! {line}" not in status
    assert f"  muted until {until} by deploy (the import of May): {line}\n" in status
    change = Change.objects.get(action="mute")
    assert (change.actor, change.source) == ("deploy", "command")

    assert run("unmute", "queue_paused") == "1 ended\n"
    assert f"! {line}" in run("status")
    assert run("unmute", "queue_paused") == "nothing was changed: it was not muted\n"


def test_status_as_json_has_muted_problems_apart() -> None:
    run("mute", "no_worker", "--until=2999-05-20T15:30+00:00", REASON)

    found = json.loads(run("status", "--format=json"))

    assert "no_worker" not in [problem["code"] for problem in found["problems"]]
    (muted,) = found["muted"]
    assert muted["code"] == "no_worker"
    assert muted["until"] == "2999-05-20T15:30:00Z"
    assert muted["reason"] == "the import of May"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["queue_pausd", "--for=1h", REASON], "Did you mean 'queue_paused'"),
        (["queue_paused", REASON], "one of the arguments --for --until is required"),
        (["queue_paused", "--for=1h"], "the following arguments are required: --reason"),
        (["queue_paused", "--for=1", REASON], "'1' is not a time such as 30m"),
        (["queue_paused", "--for=0m", REASON], "'0m' is not a time such as 30m"),
        (["queue_paused", "--until=soon", REASON], "'soon' is not a time such as 2026"),
        (["queue_paused", "--until=2020-05-20", REASON], "it must be in the future"),
    ],
)
def test_wrong_argument_is_an_error(arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run("mute", *arguments)
