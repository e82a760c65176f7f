"""The mutants: small edits of the package, each of which takes one mechanism out of it.

They stand in `tests/mutants/*.toml`, one file per subject::

    [[mutant]]
    name = "queue_lock_waits"
    promise = "is skipped by this claim"
    breaks = "A claim waits for a queue that another claim has locked."
    file = "lock_queues.sql"
    old = "FOR NO KEY UPDATE SKIP LOCKED"
    new = "FOR NO KEY UPDATE"
    tests = ["tests/concurrency/test_progress.py::test_jobs_of_a_locked_queue_are_taken"]

`promise` is a sentence of docs/explanation/guarantees.md, or a part of one. A mutant of another
document has none. `file` is the end of a path in the package, as long as one file needs. `old`
occurs in it exactly once. A mutant with several edits has `[[mutant.edit]]` tables with those
three keys instead. At least one of `tests` must fail with the edits.
"""

import ast
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent
PACKAGE = "django_tenantqueue"
GUARANTEES = ROOT / "docs/explanation/guarantees.md"
KEYS = {"name", "promise", "breaks", "file", "old", "new", "edit", "tests"}
EDIT_KEYS = {"file", "old", "new"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


class BrokenMutantError(Exception):
    """A mutant that says nothing about its tests: it cannot be read, or does not apply."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the one place of a file where `old` stands."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    breaks: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    promise: str | None

    def edited(self, tree: Path) -> dict[Path, str]:
        texts: dict[Path, str] = {}
        for edit in self.edits:
            path = self._find(tree, edit.file)
            text = texts.get(path) or path.read_text()
            if (times := text.count(edit.old)) != 1:
                raise self.broken(f"its old text occurs {times} times in {edit.file}: {edit.old!r}")
            texts[path] = text.replace(edit.old, edit.new)
        return texts

    def _find(self, tree: Path, file: str) -> Path:
        found = [
            path
            for path in sorted((tree / PACKAGE).rglob(Path(file).name))
            if f"/{path.relative_to(tree).as_posix()}".endswith(f"/{file}")
        ]
        if len(found) != 1:
            names = ", ".join(path.relative_to(tree).as_posix() for path in found)
            raise self.broken(f"{file} must name one file of the package, not: {names or 'none'}")
        return found[0]

    def check_tests(self) -> None:
        """Raise BrokenMutantError when one of its tests does not exist."""
        for test in self.tests:
            path, _, function = test.partition("::")
            if not (ROOT / path).is_file():
                raise self.broken(f"there is no file {path}")
            if function.partition("[")[0] not in function_names(ROOT / path):
                raise self.broken(f"there is no test {test}")

    def check_promise(self) -> None:
        """Raise BrokenMutantError when guarantees.md does not say what it breaks."""
        if self.promise and words(self.promise) not in words(GUARANTEES.read_text()):
            raise self.broken(f"guarantees.md does not say {self.promise!r}")

    def broken(self, why: str) -> BrokenMutantError:
        return BrokenMutantError(f"mutant {self.name}: {why}")


def read_mutants(folder: Path = FOLDER) -> dict[str, Mutant]:
    """Return the mutants of all files by their names. Raises BrokenMutantError."""
    mutants: dict[str, Mutant] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            document = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise BrokenMutantError(f"{path.name}: {error}") from error
        if unknown := document.keys() - {"mutant"}:
            raise BrokenMutantError(f"{path.name}: unknown keys {sorted(unknown)}")
        for table in document.get("mutant", []):
            mutant = read_mutant(table, path.name)
            if mutant.name in mutants:
                raise mutant.broken("there are two of this name")
            mutants[mutant.name] = mutant
    return mutants


def read_mutant(table: dict[str, Any], source: str) -> Mutant:
    name = table.get("name", "")
    edits = table.get("edit", [{key: table[key] for key in EDIT_KEYS & table.keys()}])
    mutant = Mutant(
        name=name,
        breaks=table.get("breaks", ""),
        edits=tuple(
            Edit(edit.get("file", ""), edit.get("old", ""), edit.get("new", "")) for edit in edits
        ),
        tests=tuple(table.get("tests", [])),
        promise=table.get("promise"),
    )
    allowed = KEYS - EDIT_KEYS if "edit" in table else KEYS - {"edit"}
    unknown = (table.keys() - allowed).union(*(edit.keys() - EDIT_KEYS for edit in edits))
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise BrokenMutantError(f"{source}: {name!r} is not a name of lower-case words")
    if unknown:
        raise mutant.broken(f"unknown keys {sorted(unknown)} in {source}")
    if not (mutant.breaks and mutant.tests):
        raise mutant.broken(f"needs 'breaks' and 'tests' in {source}")
    if not edits or any(not (e.file and e.old) or e.old == e.new for e in mutant.edits):
        raise mutant.broken(f"needs 'file', 'old' and another 'new' in {source}")
    return mutant


@cache
def function_names(path: Path) -> frozenset[str]:
    """Return the names of the functions of a test file, those in classes as Class::name."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, FUNCTION):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{m.name}" for m in node.body if isinstance(m, FUNCTION)}
    return frozenset(names)


def words(text: str) -> str:
    """Return Markdown without its links and line breaks."""
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).split())
