"""Settings: typos and wrong values are named."""

from __future__ import annotations

import threading
from dataclasses import fields

import pytest
from django.test import override_settings

from django_tenantqueue.conf import (
    alias_of,
    database,
    get_settings,
    main_database,
    process_database,
    read_settings,
    settings_kinds,
    switch_database,
)
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.settings import Settings


def test_defaults_hold_when_nothing_is_set():
    assert read_settings({}) == {kind: kind() for kind in settings_kinds()}


def test_values_are_read_when_they_are_right():
    made = read_settings(
        {
            "DEFAULT_TENANT_SLOTS": 3,
            "CALLABLES": ["a.b"],
            "POLL_INTERVAL": 2,
            "HISTORY_KEEP_MONTHS": None,
        }
    )[Settings]

    assert made.default_tenant_slots == 3
    assert made.callables == ("a.b",)
    assert made.poll_interval == 2.0
    assert made.history_keep_months is None


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            {"DEFAULT_TENANT_SLOT": 3},
            (
                "TENANTQUEUE['DEFAULT_TENANT_SLOT'] is not a setting; did you mean "
                "TENANTQUEUE['DEFAULT_TENANT_SLOTS']"
            ),
        ),
        ({"HISTORY_KEEP": 12}, "did you mean TENANTQUEUE['HISTORY_KEEP_MONTHS']"),
        ({"QUEUES": ["a"]}, "or TENANTQUEUE['DECLARED_QUEUES']?"),
        ({"COLOUR": 3}, "TENANTQUEUE['COLOUR'] is not a setting; known are DATABASE,"),
        ({"default_queue": "x"}, "TENANTQUEUE['default_queue'] is not a setting"),
        ({5: "x"}, "TENANTQUEUE[5] is not a setting"),
        (
            {"DEFAULT_TENANT_SLOTS": "3"},
            "TENANTQUEUE['DEFAULT_TENANT_SLOTS'] is '3': it must be int or None",
        ),
        ({"DEFAULT_TENANT_SLOTS": -1}, "is -1: it must be from 0 to 1000000"),
        ({"DEFAULT_SLOTS_WITHOUT_TENANT": True}, "is True: it must be int"),
        ({"DEFAULT_MAX_ATTEMPTS": 0}, "is 0: it must be from 1 to 32767"),
        ({"NOTIFY": 1}, "TENANTQUEUE['NOTIFY'] is 1: it must be bool"),
        ({"MASKED_ARGUMENTS": "password"}, "is 'password': it must be a list of str"),
        ({"MASKED_ARGUMENTS": ["a", ""]}, "TENANTQUEUE['MASKED_ARGUMENTS'] has '': give names"),
        ({"MASKED_ARGUMENTS": ["!pin"]}, "has '!pin', but '!' leaves out an entry of the default"),
        ({"MASKED_ARGUMENTS": ["*"]}, "TENANTQUEUE['MASKED_ARGUMENTS'] has '*': give names"),
        ({"MASKED_ARGUMENTS": [" pin"]}, "has ' pin': give names of arguments"),
        ({"POLL_INTERVAL": 0}, "TENANTQUEUE['POLL_INTERVAL'] is 0.0: it must be above 0"),
        ({"BACKOFF_BASE": "5"}, "['BACKOFF_BASE'] is '5': it must be a duration (a number"),
        ({"DEFAULT_TIMEOUT": True}, "is True: it must be a duration or None (a number of seconds"),
        ({"STATUS_ERROR": " "}, "TENANTQUEUE['STATUS_ERROR'] is ' ': it must be a text"),
        ({"STATUS_ERROR": "{mesage}"}, "It may have '{message}' in it"),
        ({"RESULT_STORE": 1}, "it must be str or None"),
        ({"CALLABLES": "a.b"}, "TENANTQUEUE['CALLABLES'] is 'a.b'"),
        ({"WRAPPERS": [1]}, "TENANTQUEUE['WRAPPERS'] is [1]"),
        ({"PRIORITY_SCOPE": "all"}, "it must be 'global' or 'tenant'"),
        ({"HISTORY_KEEP_MONTHS": 0}, "['HISTORY_KEEP_MONTHS'] is 0: it must be 1 or more"),
        ({"HISTORY_AHEAD_MONTHS": 0}, "['HISTORY_AHEAD_MONTHS'] is 0: it must be 1 or more"),
        ({"TENANT_RESOLVER": 5}, "TENANTQUEUE['TENANT_RESOLVER'] is 5"),
        ({"DEFAULT_HARD_TIMEOUT": float("inf")}, "is inf: it must be at most 315360000"),
        ({"DEFAULT_HARD_TIMEOUT": 1e10}, "it must be at most 315360000"),
        ({"DEFAULT_TIMEOUT": float("nan")}, "TENANTQUEUE['DEFAULT_TIMEOUT'] is nan"),
        ({"BACKOFF_BASE": 1e300}, "TENANTQUEUE['BACKOFF_BASE'] is 1e+300: it must be at most"),
        ({"MAX_ERRORS": 10**9}, "TENANTQUEUE['MAX_ERRORS'] is 1000000000: it must be at most 1000"),
        ({"MAX_RESULT_BYTES": 10**12}, "it must be at most 100000000"),
        ({"HISTORY_AHEAD_MONTHS": 10**6}, "it must be at most 120"),
        ({"DEFAULT_QUEUE": ""}, "it must be from 1 to 100 characters long"),
        ({"DEFAULT_QUEUE": "q" * 200}, "it must be from 1 to 100 characters long"),
        ({"DEFAULT_QUEUE": "a\x00b"}, "without NUL characters"),
    ],
    ids=str,
)
def test_setting_is_named_when_it_is_wrong(raw, message):
    with pytest.raises(InvalidOption) as caught:
        read_settings(raw)

    assert message in str(caught.value)


def test_settings_are_refused_when_they_are_no_dict():
    with (
        override_settings(TENANTQUEUE=["x"]),
        pytest.raises(InvalidOption, match=r"TENANTQUEUE is .*: it must be a dict"),
    ):
        get_settings()


def test_settings_follow_when_they_are_overridden():
    with override_settings(TENANTQUEUE={"DEFAULT_QUEUE": "mail"}):
        assert get_settings().default_queue == "mail"
    assert get_settings().default_queue == "default"


@pytest.mark.parametrize("kind", settings_kinds())
def test_every_setting_has_a_description_when_it_is_added(kind):
    import inspect

    source = inspect.getsource(kind).split("\n    ")
    names = [each.name for each in fields(kind)]
    for name in names:
        (at,) = [i for i, line in enumerate(source) if line.startswith(f"{name}:")]
        following = " ".join(source[at : at + 8])
        assert '"""' in following, name


def test_classes_of_the_context_come_on_top_of_the_default():
    def context(**raw: list[str]) -> tuple[str, ...]:
        return read_settings(raw)[Settings].context

    default = context()

    assert context(CONTEXT=["a.B"]) == (*default, "a.B")
    assert context(CONTEXT=[*default, "a.B"]) == (*default, "a.B")
    assert context(CONTEXT=["a.B", f"!{default[0]}"]) == (default[1], "a.B")
    assert context(CONTEXT=["!*"]) == ()


def test_queue_has_slots_by_its_tenant():
    made = read_settings({})[Settings]
    assert (made.slots_of("acme"), made.slots_of("")) == (5, None)

    own = read_settings({"DEFAULT_TENANT_SLOTS": None, "DEFAULT_SLOTS_WITHOUT_TENANT": 2})
    assert (own[Settings].slots_of("acme"), own[Settings].slots_of("")) == (None, 2)


def test_current_database_is_that_of_the_innermost_block():
    with database("a"):
        with database("b"):
            assert get_settings().database == alias_of(None) == "b"
            switch_database("c")
            assert get_settings().database == "c"
        assert get_settings().database == "a"
        assert get_settings() is get_settings()
        assert (alias_of("d"), main_database()) == ("d", "default")
        with override_settings(TENANTQUEUE={"DEFAULT_QUEUE": "other"}):
            assert (get_settings().database, get_settings().default_queue) == ("a", "other")
    assert get_settings().database == "default"


def test_database_of_a_process_is_that_of_its_threads_outside_of_a_block():
    seen: list[str] = []
    with process_database("a"):
        thread = threading.Thread(target=lambda: seen.append(get_settings().database))
        thread.start()
        thread.join()
        with database("b"), process_database(None):
            seen.append(get_settings().database)

    assert seen == ["a", "b"]
    assert get_settings().database == "default"
