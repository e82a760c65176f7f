"""What a process knows of what a job calls, without an import or a query."""

from __future__ import annotations

import sys

import pytest

from django_tenantqueue.calls import known
from django_tenantqueue.calls.known import known_secret, known_signature
from tests.sample_tasks import keeps_all_secret, signs_in


def names(source_type: str, source_id: str, method: str) -> list[str] | None:
    signature = known_signature(source_type, source_id, method)
    return None if signature is None else list(signature.parameters)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (("task", "", signs_in.name), ["user", "password", "card", "remember"]),
        (("task", "", "shop.gone"), None),
        (("testapp.report", "7", "execute"), ["kind"]),
        (("testapp.report@replica", "7", "execute"), ["kind"]),
        (("testapp.report", "", "count"), []),
        (("testapp.report", "7", "gone"), None),
        (("testapp.gone", "7", "execute"), None),
        (("class", "tests.sample_tasks:Tools", "make"), ["value"]),
        (("class", "tests.sample_tasks:Tools", "fixed"), []),
        (("class", "tests.sample_tasks:Tools", "attribute"), None),
        (("class", "tests.sample_tasks:gone", "make"), None),
        (("class", "tests.sample_tasks:listed_function", "make"), None),
        (("callable", "", "tests.sample_tasks:listed_function"), ["first", "second"]),
        (("callable", "", "tests.sample_tasks:Tools.make"), ["value"]),
        (("callable", "", ""), None),
        (("nothing", "", "end"), None),
        (("", "", ""), None),
    ],
)
def test_parameters_are_those_that_the_arguments_go_to(
    source: tuple[str, str, str], expected: list[str] | None
) -> None:
    assert names(*source) == expected


def test_function_without_a_signature_has_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(func: object) -> None:
        raise ValueError("no signature found")  # as of what is written in C

    monkeypatch.setattr(known, "signature_of", refuse)

    assert names("task", "", signs_in.name) is None


def test_nothing_is_imported_for_it() -> None:
    module = "tests.process.tasks"
    was_there = module in sys.modules

    known_signature("callable", "", f"{module}:anything")

    assert (module in sys.modules) == was_there


def test_secrets_are_those_of_a_registered_task() -> None:
    assert known_secret("task", keeps_all_secret.name) is keeps_all_secret.source.secret
    assert known_secret("callable", keeps_all_secret.name) is None
    assert known_secret("task", "shop.gone") is None
