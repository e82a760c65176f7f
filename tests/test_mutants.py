"""Each mutant can be tried: a rename that loses one is found here, without running it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import django_tenantqueue
from tests.mutants.catalogue import (
    GUARANTEES,
    PACKAGE,
    BrokenMutantError,
    Mutant,
    read_mutant,
    read_mutants,
    words,
)

MUTANTS = read_mutants()
INSTALLED = Path(django_tenantqueue.__file__).resolve().parents[1]
WITHOUT_MUTANTS = {"Not yet"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for file in ("sql/pump.sql", "operations/claim.py", "worker/claim.py"):
        path = tmp_path / PACKAGE / file
        path.parent.mkdir(parents=True)
        path.write_text("a\nb\nb\n")
    return tmp_path


def make_mutant(**changes: Any) -> Mutant:
    table = {
        "name": "loses_a",
        "breaks": "There is no a.",
        "file": "pump.sql",
        "old": "a",
        "new": "",
        "tests": ["tests/test_mutants.py::test_edits_are_made_when_they_apply"],
    }
    return read_mutant({k: v for k, v in {**table, **changes}.items() if v is not None}, "x.toml")


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_can_be_tried(name: str) -> None:
    mutant = MUTANTS[name]

    for path, text in mutant.edited(INSTALLED).items():
        if path.suffix == ".py":
            ast.parse(text)
    mutant.check_tests()
    mutant.check_promise()


def test_every_section_of_the_guarantees_has_a_mutant() -> None:
    promises = [words(mutant.promise) for mutant in MUTANTS.values() if mutant.promise]
    sections = re.split(r"^## ", GUARANTEES.read_text(), flags=re.MULTILINE)[1:]

    assert [
        heading
        for heading, section in ((s.partition("\n")[0], words(s)) for s in sections)
        if heading not in WITHOUT_MUTANTS and not any(p in section for p in promises)
    ] == []


def test_edits_are_made_when_they_apply(tree: Path) -> None:
    edits = [
        {"file": "worker/claim.py", "old": "a", "new": "c"},
        {"file": f"{PACKAGE}/sql/pump.sql", "old": "b\nb", "new": "d"},
        {"file": "pump.sql", "old": "a", "new": "e"},
    ]

    assert make_mutant(file=None, old=None, new=None, edit=edits).edited(tree) == {
        tree / PACKAGE / "worker/claim.py": "c\nb\nb\n",
        tree / PACKAGE / "sql/pump.sql": "e\nd\n",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"old": "b"}, "loses_a: its old text occurs 2 times in pump.sql: 'b'"),
        ({"old": "c"}, "loses_a: its old text occurs 0 times in pump.sql: 'c'"),
        ({"file": "claim.py"}, "not: django_tenantqueue/operations/claim.py, django_tenantqueue"),
        ({"file": "ump.sql"}, "loses_a: ump.sql must name one file of the package, not: none"),
    ],
)
def test_mutant_is_named_when_it_does_not_apply(
    tree: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BrokenMutantError, match=re.escape(message)):
        make_mutant(**changes).edited(tree)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "A b"}, "x.toml: 'A b' is not a name of lower-case words"),
        ({"breaks": ""}, "loses_a: needs 'breaks' and 'tests' in x.toml"),
        ({"tests": []}, "loses_a: needs 'breaks' and 'tests' in x.toml"),
        ({"new": "a"}, "loses_a: needs 'file', 'old' and another 'new' in x.toml"),
        ({"old": None}, "loses_a: needs 'file', 'old' and another 'new' in x.toml"),
        ({"test": "x"}, "loses_a: unknown keys ['test'] in x.toml"),
        ({"edit": []}, "loses_a: unknown keys ['file', 'new', 'old'] in x.toml"),
        ({"edit": [], "file": None, "old": None, "new": None}, "loses_a: needs 'file', 'old' and"),
    ],
)
def test_mutant_is_refused_when_it_is_not_complete(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BrokenMutantError, match=re.escape(message)):
        make_mutant(**changes)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("tests/test_none.py::test_x", "loses_a: there is no file tests/test_none.py"),
        ("tests/test_mutants.py::test_x", "there is no test tests/test_mutants.py::test_x"),
        ("tests/test_mutants.py", "there is no test tests/test_mutants.py"),
    ],
)
def test_mutant_is_refused_when_its_test_does_not_exist(test: str, message: str) -> None:
    with pytest.raises(BrokenMutantError, match=re.escape(message)):
        make_mutant(tests=[test]).check_tests()


def test_mutant_is_refused_when_its_promise_is_not_made() -> None:
    with pytest.raises(BrokenMutantError, match=r"guarantees.md does not say 'Jobs fly.'"):
        make_mutant(promise="Jobs fly.").check_promise()


def test_name_is_refused_when_two_have_it(tmp_path: Path) -> None:
    table = """[[mutant]]
name = "twin"
breaks = "x"
file = "x.py"
old = "a"
new = ""
tests = ["x::y"]
"""
    (tmp_path / "one.toml").write_text(table)
    (tmp_path / "two.toml").write_text(table)

    with pytest.raises(BrokenMutantError, match="mutant twin: there are two of this name"):
        read_mutants(tmp_path)
