"""Find the lines of a project that use Celery, and say what to write in their place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import open as open_source

from ... import signals
from . import names
from .results import Results
from .rewriting import (
    CANVAS,
    apply_async,
    canvas,
    is_call,
    is_retries,
    of_error,
    options_of_canvas,
    retry,
    started,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A line that uses Celery."""

    file: str
    line: int
    kind: str
    code: str
    write: str


def scan(paths: Iterable[Path], tasks: set[str]) -> tuple[list[Finding], list[str]]:
    """Return what there is to change in these files, and which could not be read.

    `tasks`: the names of the tasks' functions.
    """
    modules: list[_Module] = []
    unread: list[str] = []
    for path in paths:
        try:
            with open_source(str(path)) as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError) as error:
            unread.append(f"{path}: {error}")
            continue
        modules.append(_Module(path, tree, tasks))
    returned = {name: kind for module in modules for name, kind in module.results.returned()}
    found: list[Finding] = []
    for module in modules:
        module.results.learn(returned)
        seen = set(module.findings())
        found += sorted(seen, key=lambda each: (each.line, each.kind, each.code))
    return found, unread


class _Module:
    """One file."""

    def __init__(self, path: Path, tree: ast.Module, tasks: set[str]) -> None:
        self.file = str(path)
        self.tree = tree
        self.tasks = tasks
        is_test = path.name.startswith("test") or path.parent.name == "tests"
        self.waits = names.IN_TESTS if is_test else names.WAITS
        self.imported: dict[str, str] = {}
        """Name in this file -> name in Celery."""
        self.apps: set[str] = set()
        """Variables that hold the app."""
        self.told: set[ast.AST] = set()
        """Parts of what was found already."""
        self.of_imports = [
            found
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for found in self._import(node)
        ]
        self.results = Results(tree, self.imported)

    def findings(self) -> Iterator[Finding]:
        yield from self.of_imports
        for node in ast.walk(self.tree):  # a call comes before the calls in its arguments
            if node in self.told:
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._task_body(node)
            elif isinstance(node, ast.ClassDef):
                yield from self._class(node)
            elif isinstance(node, ast.Assign):
                yield from self._assignment(node)
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.BinOp) and self.results.canvas_of(node):
                yield self._canvas(node, "chain")
            elif isinstance(node, ast.Attribute):
                yield from self._result(node)

    def _found(self, node: ast.AST, kind: str, write: str, code: str | None = None) -> Finding:
        text = code if code is not None else " ".join(ast.unparse(node).split())
        return Finding(self.file, getattr(node, "lineno", 0), kind, text, write)

    def _import(self, node: ast.ImportFrom) -> Iterator[Finding]:
        first, _, last = str(node.module).rpartition(".")
        if last == "celery" and (first or node.level):  # the module of the app, beside settings
            self.apps |= {alias.asname or alias.name for alias in node.names}
            yield self._found(node, "app", f"{names.APP_IS_GONE}. @app.task becomes @task")
        elif not node.level and str(node.module).partition(".")[0] == "kombu":
            yield self._found(node, "import", names.BROKER)
        elif not node.level and str(node.module).partition(".")[0] == "celery":
            for alias in node.names:
                self.imported[alias.asname or alias.name] = alias.name
                code = f"from {node.module} import {alias.name}"
                if node.module == "celery.signals":
                    write = signals.ELSEWHERE.get(alias.name, names.SIGNAL)
                    yield self._found(node, "signals", write, code)
                elif alias.name in names.IMPORTS:
                    yield self._found(node, "import", names.IMPORTS[alias.name], code)

    def _canvas(
        self, node: ast.Call | ast.BinOp, kind: str, options: str = "", *, starts: bool = True
    ) -> Finding:
        self.told |= set(ast.walk(node))
        return self._found(node, kind, canvas(node, kind, starts=starts) + options)

    def _task_body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
        """Yield what a task's options say of its end, and what a bound task does with itself."""
        given = {
            keyword.arg
            for decorator in node.decorator_list
            if isinstance(decorator, ast.Call)
            and ast.unparse(decorator.func).rpartition(".")[2] in ("task", "shared_task")
            for keyword in decorator.keywords
        }
        for name in sorted(given & set(names.HOOKS), key=str):
            yield self._found(node, "hook", _hook(str(name)), f"{name}=… of {node.name}")
        if "bind" not in given or not node.args.args:
            return
        first = node.args.args[0].arg
        calls = (each for each in ast.walk(node) if is_call(each, "retry"))
        for attempts in (each for call in calls for each in ast.walk(call)):
            if isinstance(attempts, ast.Attribute) and is_retries(attempts):  # retry() rewrites it
                self.told |= {attempts, attempts.value}
        inside = [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]
        for inner in inside:
            if inner not in self.told and ast.unparse(inner.value) == f"{first}.request":
                self.told.add(inner.value)
                write = names.REQUEST.get(inner.attr, names.SELF["request"])
                yield self._found(inner, "request", write)
        for inner in inside:
            if (
                inner not in self.told
                and ast.unparse(inner.value) == first
                and inner.attr in names.SELF
            ):
                yield self._found(inner, inner.attr, names.SELF[inner.attr])

    def _class(self, node: ast.ClassDef) -> Iterator[Finding]:
        """Yield the methods of a class of tasks that are called at times of a run."""
        if not any(
            self.results.name_of(base) == "Task" or ast.unparse(base).endswith("Task")
            for base in node.bases
        ):
            return
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and inner.name in names.HOOKS:
                yield self._found(inner, "hook", _hook(inner.name), f"def {inner.name}(…)")

    def _assignment(self, node: ast.Assign) -> Iterator[Finding]:
        """Yield an app, and what is set of one."""
        if isinstance(node.value, ast.Call) and self.results.name_of(node.value.func) == "Celery":
            self.apps |= {ast.unparse(target) for target in node.targets}
            yield self._found(node, "app", names.APP_IS_GONE)
        if isinstance(node.value, ast.Call) and self.results.canvas_of(node.value) == "group":
            yield self._canvas(node.value, "group", starts=False)
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                yield from self._setting(target, target.attr)

    def _setting(self, node: ast.AST, name: str) -> Iterator[Finding]:
        for known, write in names.CONF.items():
            if name.lower().endswith(known):
                code = ast.unparse(node) if isinstance(node, ast.Attribute) else f"{name}=…"
                yield self._found(node, "setting", write, code)

    def _result(self, node: ast.Attribute) -> Iterator[Finding]:
        if self.results.name_of(node.value) == "signals":
            yield self._found(node, "signals", signals.ELSEWHERE.get(node.attr, names.SIGNAL))
        kind = self.results.kind_of(node.value)
        known = names.GROUP_RESULTS if kind == "group" else names.RESULTS
        if kind and node.attr in known:
            yield self._found(node, "result", known[node.attr])

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        for keyword in node.keywords:
            yield from self._setting(keyword, keyword.arg or "")
        # group(…)() and chord(…)(callback) are one use
        func = node.func
        name = self.results.name_of(func.func if isinstance(func, ast.Call) else func)
        if name in CANVAS:
            yield self._canvas(node, name)
            return
        if not isinstance(func, ast.Attribute):
            return
        owner, attribute = func.value, func.attr
        is_task = ast.unparse(owner).rpartition(".")[2] in self.tasks
        kind = self.results.kind_of(owner)
        if attribute in names.APP and ast.unparse(owner) in {*self.apps, "sender"}:
            yield self._found(node, "app", names.APP[attribute])
        elif attribute in ("apply_async", "delay") and is_call(owner, "s", "si") and not node.args:
            self.told |= set(ast.walk(node))
            yield self._found(node, "apply_async", started(node, owner))
        elif attribute == "apply_async":
            yield from self._apply_async(node, owner, is_task)
        elif attribute in ("delay_on_commit", "apply_async_on_commit"):
            yield self._found(
                node, attribute, f"{ast.unparse(owner)}.delay(…): it is transactional"
            )
        elif attribute == "on_commit" and any(
            is_call(each, *names.STARTS) for each in ast.walk(node)
        ):
            yield self._found(node, attribute, "call .delay() at once: it is transactional")
        elif attribute in ("s", "si", "subtask") and (is_task or attribute != "subtask"):
            yield self._found(node, attribute, f"{ast.unparse(owner)}.call(…)")
        elif attribute in ("on_error", "link_error") and is_call(owner, "s", "si"):
            self.told |= set(ast.walk(node))
            yield self._found(node, attribute, of_error(node))
        elif attribute in ("map", "starmap", "chunks", "signature", "apply") and is_task:
            write = CANVAS.get(attribute, names.APPLY if attribute == "apply" else "")
            yield self._found(node, attribute, write or CANVAS["xmap"])
        elif attribute == "retry" and (is_task or ast.unparse(owner) == "self"):
            yield self._found(node, attribute, retry(node))
        elif attribute == "send_task":
            yield self._found(node, attribute, "import the task, and call its .delay()")
        elif attribute in names.WAITING and (kind or _waits(node)):
            yield self._found(node, "get", self.waits[kind or "job"])
        elif attribute == "revoke":
            self.told.add(func)
            known = names.GROUP_RESULTS if kind == "group" else names.RESULTS
            yield self._found(node, attribute, known[attribute])
        elif attribute == "AsyncResult":
            yield self._found(node, attribute, "Job.objects.get(pk=…)")
        elif attribute == "restore" and kind == "" and self.results.kind_of(node):
            yield self._found(node, attribute, "ConcurrentJobMonitor.objects.get(pk=…)")

    def _apply_async(self, node: ast.Call, owner: ast.AST, is_task: bool) -> Iterator[Finding]:
        kind = self.results.canvas_of(owner)
        if kind and isinstance(owner, ast.Call | ast.BinOp):
            self.told.add(node.func)
            yield self._canvas(owner, kind, options_of_canvas(node, kind))
        elif kind:
            start = (
                f"{ast.unparse(owner)}.delay()"
                if kind == "group"
                else f"the .delay(…) that is printed for the {kind}"
            )
            yield self._found(node, "apply_async", start + options_of_canvas(node, kind))
        elif is_task or not isinstance(owner, ast.Call):
            self.told |= {each for each in ast.walk(node) if is_call(each, "s", "si")}
            yield self._found(node, "apply_async", apply_async(node, owner))


def _waits(node: ast.Call) -> bool:
    return any(keyword.arg in ("timeout", "propagate") for keyword in node.keywords)


def _hook(name: str) -> str:
    """Return what to write for a method of a task class, or an option, of Celery."""
    also = "; error(job, error) before it has the exception" if name == "on_failure" else ""
    return f"the method {names.HOOKS[name]} of an object, given as @task(hooks=…){also}"
