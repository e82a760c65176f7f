"""Find the lines of a project that touch Celery, for `tenantqueue celery-report`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import open as open_source

from .report_names import SECTIONS, STARTS, TABLES, Entry, section_of
from .report_scopes import Module, Project

OF_CELERY = re.compile(r"^(kombu|flower)\b|^\w*celery|\.celery\b")
"""Full names of Celery, and of packages around it."""
WORDS = re.compile(r"celery|kombu|flower|task|delay|apply_async", re.I)
"""Files without one of them are not read."""
NOT_THE_PROJECT = {"site-packages", "dist-packages", "node_modules"}
OF_RESULTS = {"get", "wait", "ready", "successful", "revoke", "forget", "join_native"}
OF_GET = {"timeout", "propagate", "interval", "disable_sync_subtasks", "terminate"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line that touches Celery."""

    file: str
    line: int
    code: str
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Report:
    """`untold`: lines that may use a task or a result. `unread`: files that could not be read."""

    sections: dict[str, list[Line]]
    untold: list[Line]
    unread: list[str]


def project_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the Python files of the project, without environments and hidden directories."""
    for path in paths:
        for found in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            parts = found.relative_to(path).parts
            if not NOT_THE_PROJECT & {*parts} and not any(p.startswith(".") for p in parts):
                yield found


def make_report(paths: Iterable[Path]) -> Report:
    """Return the lines of these files that touch Celery."""
    report = Report({section: [] for section in SECTIONS}, [], [])
    modules, prefixes = [], {"CELERY"}
    for path in paths:
        try:
            with open_source(str(path)) as file:
                source = file.read()
            if WORDS.search(source):
                modules.append(Module(path, source))
                prefixes |= set(re.findall(r"\bnamespace=[\"']([A-Z_]+)[\"']", source))
        except (OSError, SyntaxError, ValueError) as error:
            report.unread.append(f"{path}: {error}")
    project = Project(modules)
    setting = re.compile(rf"^(?:(?:{'|'.join(sorted(prefixes))})[A-Z]*_|(?=BROKER_))([A-Z_]+)$")
    for module in modules:
        reader = _Reader(project, module, setting)
        for node in ast.walk(module.tree):
            reader.read(node)
        for (section, number), warnings in sorted(reader.found.items()):
            report.sections[section].append(reader.line(number, warnings))
        told = {number for _, number in reader.found}
        for number, is_start in sorted(reader.untold.items()):
            if number not in told and (told or is_start):
                report.untold.append(reader.line(number, []))
    return report


class _Reader:
    """Reads one file."""

    def __init__(self, project: Project, module: Module, setting: re.Pattern[str]) -> None:
        self.project, self.module, self.setting = project, module, setting
        self.found: dict[tuple[str, int], list[str]] = {}
        self.untold: dict[int, bool] = {}
        """Numbers of lines. False: it counts in a file that touches Celery."""
        self.inner: set[ast.AST] = set()
        """Parts of names that were read."""

    def line(self, number: int, warnings: list[str]) -> Line:
        code = self.module.lines[number - 1].strip()
        return Line(str(self.module.path), number, code, warnings)

    def add(self, node: ast.AST, found: Entry) -> None:
        warnings = self.found.setdefault((found.section, getattr(node, "lineno", 1)), [])
        if found.warning and found.warning not in warnings:
            warnings.append(found.warning)

    def role(self, node: ast.AST) -> str:
        return self.project.role(node, self.module.scopes[node])

    def read(self, node: ast.AST) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    what = self.project.look_up(self.module.imported(node, alias))
                    self.name(node, "celery.app" if what == "@app" else what)
            case ast.Name():
                self.name(node, self.project.value(node, self.module.scopes[node]))
                self.settings(node, node.id)
            case ast.Attribute():
                self.attribute(node)
            case ast.Call():
                self.call(node)
            case ast.keyword(arg=str(name)):
                self.settings(node, name)
            case ast.Constant(value=str(text)):
                self.text(node, text)
            case ast.ClassDef():
                if self.project.name(node.name, self.module.scopes[node]) == "@task_class":
                    self.add(node, Entry("hooks"))
                    for each in node.body:
                        for name, _ in self.module.assigned(each):
                            if name in (*STARTS, "__call__", *TABLES["options"]):
                                self.add(each, TABLES["options"].get(name, Entry("hooks")))

    def name(self, node: ast.AST, what: str) -> None:
        if node not in self.inner and what[:1] != "@" and OF_CELERY.search(what):
            self.add(node, section_of(what, "names"))

    def settings(self, node: ast.AST, name: str) -> None:
        if match := self.setting.match(name):
            self.add(node, section_of(match[1].lower(), "settings"))

    def attribute(self, node: ast.Attribute) -> None:
        self.settings(node, node.attr)
        owner = self.role(node.value)
        known = TABLES.get(owner, {}) if owner.startswith("@") else {}
        if found := known.get(node.attr) or known.get("*"):
            self.add(node, found)
        elif owner == "@conf":
            self.add(node, section_of(node.attr, "settings"))
        elif node.attr in STARTS and owner and owner[0] not in "@-":  # of another package
            self.add(node, TABLES["@task"][node.attr])
        elif node.attr in STARTS:
            self.untold[node.lineno] = True
        else:
            what = self.project.value(node, self.module.scopes[node])
            self.name(node, what)
            self.inner |= set(ast.walk(node.value)) if OF_CELERY.search(what) else set()

    def call(self, node: ast.Call) -> None:
        func, role = node.func, self.role(node.func)
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        owner = self.role(func.value) if isinstance(func, ast.Attribute) else ""
        given = {each.arg: each for each in node.keywords if each.arg}
        table: dict[str, Entry] = {}
        if role == "@decorator" or (name in STARTS[1::2] and role) or name == "send_task":
            table = TABLES["options"]
        elif name == "retry" and owner == "@task":
            table = TABLES["options of retry"]
        elif name == "update" and owner == "@conf":
            table = {arg: section_of(arg, "settings") for arg in given}
        elif name == "crontab" and {"day_of_month", "day_of_week"} <= given.keys():
            self.add(
                node, Entry("schedules", "both days must match in Celery, in Cron one is enough")
            )
        elif name == "on_commit":
            inside = [each for one in node.args for each in ast.walk(one)]
            if any(getattr(each, "attr", "") in STARTS for each in inside):
                self.add(node, TABLES["@task"]["delay_on_commit"])
        elif owner == "" and name in OF_RESULTS and not node.args and given.keys() <= OF_GET:
            self.untold.setdefault(node.lineno, False)
        for arg, each in given.items() if table else ():
            self.add(each, table.get(arg, Entry("tasks", f"{arg}: not supported")))

    def text(self, node: ast.Constant, text: str) -> None:
        self.settings(node, text)
        if re.fullmatch(r"[\w:]+\.[\w.:]+|django_celery_\w+", text):
            what = self.project.look_up(text)
            if what == "@task":
                self.add(node, Entry("calls", "the name of a task"))
            elif text.endswith(STARTS) and what == "->@result":
                self.add(
                    node, Entry("tests", "a job of a test is a row, which shows what was enqueued")
                )
            else:
                self.name(node, what)
