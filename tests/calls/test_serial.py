"""Serial: what it takes, and the words for what it is not."""

from __future__ import annotations

from typing import Any

import pytest

from django_tenantqueue import Serial, group, task
from django_tenantqueue.calls.given_options import merged
from django_tenantqueue.calls.options import Options
from django_tenantqueue.calls.serial import session_of
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import ConcurrentJobMonitor
from tests.testapp.tasks import noop


def session_given(value: Any) -> Any:
    return merged(Options(), {"session": value}).session


def test_key_alone_is_the_same_as_a_serial_with_its_defaults() -> None:
    assert session_given("s") == session_given(Serial("s")) == "s"
    assert session_given(7) == session_given(Serial(7)) == "7"


def test_serial_takes_the_place_of_another_as_a_whole() -> None:
    halting = merged(Options(), {"session": Serial("s", on_failure="halt")})

    assert halting.session == Serial("s", on_failure="halt")
    assert merged(halting, {"session": "other"}).session == "other"
    assert merged(halting, {"session": None}).session is None


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("halts", [False, True])
def test_job_has_the_session_it_was_given(skips: bool, halts: bool) -> None:
    session = session_of("s", skips=skips, halts=halts)

    assert session == session_given(
        Serial(
            "s",
            on_wait="skip" if skips else "block",
            on_failure="halt" if halts else "continue",
        )
    )
    assert session_of(None, skips=skips, halts=halts) is None


@pytest.mark.parametrize("key", ["", "x" * 201, "a\0", "\ud800", True, 1.5, None, Serial("s")])
def test_key_is_a_text_or_a_number(key: Any) -> None:
    with pytest.raises(InvalidOption, match=r"the key must be an int, or a str of 1 to 200"):
        Serial(key)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("on_wait", r"'on_wait': use session=Serial\(…, on_wait=…\)"),
        ("on_failure", r"'on_failure': use session=Serial\(…, on_failure='halt'\)"),
        ("user", "'user': use limit_user=… for at most N jobs of a user at once, created_by=…"),
    ],
)
def test_option_that_has_another_name_is_answered_with_it(option: str, said: str) -> None:
    given: dict[str, Any] = {option: "skip"}
    for call in (noop.using, group([noop]).using):
        with pytest.raises(InvalidOption, match=f"unknown option {said}"):
            call(**given)
    with pytest.raises(InvalidOption, match=f"unknown option {said}"):
        task(name="tests.given", **given)(lambda: None)


@pytest.mark.django_db
def test_session_of_a_monitor_says_what_the_row_of_the_session_says() -> None:
    session: Any = Serial("s", on_failure="halt")
    with pytest.raises(InvalidOption, match=r"takes no on_wait and on_failure.* session='s'"):
        ConcurrentJobMonitor.objects.start("x", [noop.call()], parallel=1, session=session)
