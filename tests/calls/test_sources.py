"""A pattern of CALLABLES allows what is defined there, not what is only reached through it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from django.test import override_settings

from django_tenantqueue import delayed
from django_tenantqueue.calls.sources import describe_named, resolve
from django_tenantqueue.exceptions import NotAllowed
from tests import listed_code

CODE = "tests.listed_code"
PATTERN = override_settings(TENANTQUEUE={"CALLABLES": [f"{CODE}.*"]})
FOREIGN = (
    "os.system",
    "os.path.join",
    "subprocess.run",
    "run",
    "text_of",
    "of_three",
    "machine",
    "machine.shell",
    "machine.run",
    "machine.system",
    "machine.starter",
    "Machine.shell",
    "Machine.run",
    "Machine.inner",
    "Machine.inner.objects.create",
    "Plain",
    "Plain.objects.all",
    "partial",
    "control.cancel",
)
OWN = {
    "double": (4, 8),
    "doubled": (4, 8),
    "triple": (4, 12),
    "Machine.named": (None, "Machine"),
    "Machine.fixed": (None, "fixed"),
    "Base.named": (None, "Base"),
    "machine.start": (None, "started"),
    "machine.named": (None, "Machine"),
    "start": (None, "started"),
}


def call(func: Any, value: Any) -> Any:
    return func() if value is None else func(value)


@PATTERN
@pytest.mark.parametrize("name", FOREIGN)
def test_pattern_does_not_allow_what_is_defined_elsewhere(name: str) -> None:
    with pytest.raises(NotAllowed, match=r"may not be run|part of django_tenantqueue"):
        resolve("callable", "", f"{CODE}:{name}")


@PATTERN
@pytest.mark.parametrize("name", OWN)
def test_pattern_allows_what_is_defined_there(name: str) -> None:
    func, _task = resolve("callable", "", f"{CODE}:{name}")
    value, result = OWN[name]

    assert call(func, value) == result


@pytest.mark.parametrize("name", ["of_three", "run", "machine", "os.system", "Machine.shell"])
def test_name_in_full_allows_what_is_defined_elsewhere(name: str) -> None:
    with override_settings(TENANTQUEUE={"CALLABLES": [f"{CODE}.{name}"]}):
        source, _task = describe_named(f"{CODE}:{name}")

    assert source.source_method == f"{CODE}:{name}"


def test_pattern_of_a_package_allows_what_its_modules_define() -> None:
    with override_settings(TENANTQUEUE={"CALLABLES": ["tests.*"]}):
        func, _task = resolve("callable", "", f"{CODE}:Plain")

    assert func is listed_code.Plain


@pytest.mark.parametrize("name", ["control.cancel", "os.system"])
def test_pattern_of_everything_still_leaves_the_package_out(name: str) -> None:
    with override_settings(TENANTQUEUE={"CALLABLES": ["*"]}):
        if name == "os.system":
            assert resolve("callable", "", f"{CODE}:{name}")[0] is os.system
        else:
            with pytest.raises(NotAllowed, match="is a part of django_tenantqueue itself"):
                resolve("callable", "", f"{CODE}:{name}")


@override_settings(TENANTQUEUE={"CALLABLES": [f"{CODE}.Machine.*"]})
@pytest.mark.parametrize("name", ["shell", "run", "system", "inner"])
def test_attribute_of_a_listed_class_is_refused_when_it_is_no_method_of_it(name: str) -> None:
    with pytest.raises(NotAllowed, match="may not be run"):
        getattr(delayed(listed_code.Machine), name)("true")
    with pytest.raises(NotAllowed, match="may not be run"):
        resolve("class", f"{CODE}:Machine", name)


@override_settings(TENANTQUEUE={"CALLABLES": [f"{CODE}.Machine.*"]})
def test_inherited_method_of_a_listed_class_is_allowed() -> None:
    assert resolve("class", f"{CODE}:Machine", "named")[0]() == "Machine"
    assert resolve("class", f"{CODE}:Machine", "fixed")[0]() == "fixed"


@pytest.mark.parametrize(
    "name", ["start_bulk", "start_cancel", "start_logged", "purge.handle", "purge.execute"]
)
@pytest.mark.parametrize("entry", ["{}.{}", "{}.*", "*"])
def test_what_the_package_defines_is_refused_under_any_name(name: str, entry: str) -> None:
    listed = [entry.format(CODE, name)]

    with (
        override_settings(TENANTQUEUE={"CALLABLES": listed}),
        pytest.raises(NotAllowed, match=r"django_tenantqueue|may not be run"),
    ):
        describe_named(f"{CODE}:{name}")
