"""Limits of what is stored with a job."""

from __future__ import annotations

from typing import Any

import pytest

from django_tenantqueue.conf import read_settings
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption
from django_tenantqueue.models import Job
from django_tenantqueue.stored_error import describe_error
from tests.testapp.tasks import echo


@pytest.mark.django_db
def test_large_arguments_are_refused_at_the_call(settings: Any) -> None:
    settings.TENANTQUEUE = {"MAX_ARGUMENT_BYTES": 30}
    echo.delay("x" * 10)

    for text in ("x" * 30, "ü" * 10):
        with pytest.raises(InvalidArgument, match=r"more than TENANTQUEUE\['MAX_ARGUMENT_BYTES"):
            echo.delay(text)
    with pytest.raises(InvalidArgument):
        echo.enqueue_many([("x" * 30,)])

    assert Job.objects.count() == 1


@pytest.mark.django_db
def test_long_labels_are_refused_at_the_call(settings: Any) -> None:
    settings.TENANTQUEUE = {"MAX_LABEL_BYTES": 5}
    echo.using(labels=["ab", "cde"]).delay(1)

    with pytest.raises(InvalidOption, match="MAX_LABEL_BYTES"):
        echo.using(labels=["ab", "cü", "d"]).delay(1)

    assert Job.objects.count() == 1


def test_middle_of_a_long_error_is_left_out(settings: Any) -> None:
    settings.TENANTQUEUE = {"MAX_MESSAGE_CHARS": 20, "MAX_TRACEBACK_CHARS": 30}

    stored = describe_error(ValueError("a" * 50 + "b" * 50), 1)

    assert stored["message"].startswith("a" * 10 + "\n…")
    assert stored["message"].endswith("…\n" + "b" * 10)
    assert "characters left out" in stored["traceback"]


@pytest.mark.parametrize(
    "name", ["MAX_ARGUMENT_BYTES", "MAX_LABEL_BYTES", "MAX_MESSAGE_CHARS", "MAX_TRACEBACK_CHARS"]
)
@pytest.mark.parametrize("value", [0, -1, 10**9, "1", None])
def test_limits_must_be_sensible_numbers(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=name):
        read_settings({name: value})
