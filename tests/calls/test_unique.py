"""What Unique takes, and what it refuses at the call."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_tenantqueue import Unique, task
from django_tenantqueue.calls.unique import MODES, STRATEGIES
from django_tenantqueue.exceptions import InvalidOption
from tests.testapp.tasks import noop


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_taken(mode: str) -> None:
    ttl = 60 if mode.startswith("until_") else None

    assert noop.using(unique=Unique(mode, ttl=ttl))._options.unique == Unique(mode, ttl=ttl)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_is_taken(strategy: str) -> None:
    assert Unique("until_executed", on_conflict=strategy).on_conflict == strategy


def test_default_mode_holds_the_key_until_the_end() -> None:
    assert Unique() == Unique("until_executed")


def test_ttl_is_taken_as_timedelta() -> None:
    assert Unique("until_expired", ttl=timedelta(minutes=2)).ttl_seconds == 120.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"mode": "until_done"},
            r"'until_done'.*'until_executing', .* or 'while_executing_reject'",
        ),
        ({"on_conflict": "ignore"}, r"'ignore'.*'return', 'raise', .* or 'log'"),
        ({"key": 7.5}, "key=7.5.*str, a callable"),
        ({"key": ""}, "1 to 200"),
        ({"key": "x" * 201}, "1 to 200"),
        ({"key": "a\x00b"}, "without NUL"),
        ({"ttl": 0}, r"ttl=0\): it must be seconds"),
        ({"ttl": True}, "ttl=True"),
        ({"ttl": "600"}, "ttl='600'"),
        ({"ttl": timedelta(days=40 * 365)}, "ten years"),
        ({"mode": "until_expired"}, "needs a ttl"),
        ({"mode": "while_executing", "ttl": 5}, "nothing expires there"),
        ({"mode": "while_executing", "on_conflict": "raise"}, "no call has a conflict"),
        ({"mode": "while_executing_reject", "on_conflict": "replace"}, "on_conflict='replace'"),
    ],
)
def test_option_is_refused_with_what_is_allowed(options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        Unique(**{"mode": "until_executed", **options})


@pytest.mark.parametrize("value", ["until_executed", True, {"mode": "until_executed"}])
def test_unique_is_refused_when_it_is_none(value: object) -> None:
    with pytest.raises(InvalidOption, match=r"must be a Unique, as in Unique\("):
        noop.using(unique=value)
    with pytest.raises(InvalidOption, match="must be a Unique"):
        task(unique=value)(test_every_mode_is_taken)
