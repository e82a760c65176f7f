"""Find the lines of a project that use Celery, and say what to write in their place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import open as open_source

from .rewriting import CANVAS, apply_async, canvas, is_call, retry

IMPORTS = {
    "AsyncResult": "from django_tenantqueue import Job; the id of a job is an int",
    "Celery": "the setting TENANTQUEUE: there is no object for the app",
    "Ignore": "return",
    "MaxRetriesExceededError": "current_job().attempt == current_job().max_attempts",
    "Reject": "raise Permanent(…)",
    "Retry": "from django_tenantqueue import Retry",
    "SoftTimeLimitExceeded": "from django_tenantqueue.exceptions import TimeLimitExceeded",
    "chain": "from django_tenantqueue import Placeholder, for then=… with a result",
    "chord": "from django_tenantqueue import group, whose delay() takes on_done=…",
    "crontab": "from django_tenantqueue import Cron",
    "group": "from django_tenantqueue import group",
    "signature": "nothing: task.call(…)",
    "Task": "hooks=… of @task, for code around the runs of a task",
    "get_task_logger": "logging.getLogger(__name__)",
    "shared_task": "from django_tenantqueue import task",
}
RETRIES = "current_job().attempt - 1"
SELF = {
    "replace": "enqueue the other task, and return",
    "request": "current_job(): id, attempt, max_attempts, tenant, queue",
    "update_state": "current_job().progress(done, total, message)",
}
ASYNC_RESULT = {"AsyncResult", "GroupResult", "ResultSet"}
WAIT_FOR_GROUP = "on_done=… of its delay(), which reads current_job().summary.details()"
WAIT = "job.wait(timeout=…).result; not in a task, nor in the transaction that enqueues"
STARTS = {"apply_async", "delay", "delay_on_commit", "apply_async_on_commit", "send_task"}


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
    found: list[Finding] = []
    unread: list[str] = []
    for path in paths:
        try:
            with open_source(str(path)) as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError) as error:
            unread.append(f"{path}: {error}")
            continue
        seen = _Module(str(path), tree, tasks).findings()
        found += sorted(set(seen), key=lambda each: (each.line, each.kind))
    return found, unread


class _Module:
    """One file."""

    def __init__(self, file: str, tree: ast.Module, tasks: set[str]) -> None:
        self.file = file
        self.tree = tree
        self.tasks = tasks
        self.imported: dict[str, str] = {}
        """Name in this file -> name in Celery."""
        self.results: set[str] = set()
        """Variables that hold a result of Celery."""
        self.groups: set[str] = set()
        """Those of them that hold the result of a group or a chord."""
        self.told: set[ast.AST] = set()
        """Parts of what was found already."""

    def findings(self) -> Iterator[Finding]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and _is_celery(node.module):
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = alias.name
                    if alias.name in IMPORTS:
                        code = f"from {node.module} import {alias.name}"
                        yield self._found(node, "import", IMPORTS[alias.name], code)
                if node.module == "celery.signals":
                    write = "hooks=… of a task, the setting WRAPPERS, or the package's signals"
                    yield self._found(node, "signals", write)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and self._is_result(node.value):
                names = {ast.unparse(target) for target in node.targets}
                self.results |= names
                if self._is_canvas(node.value):
                    self.groups |= names
        for node in ast.walk(self.tree):  # a call comes before the calls in its arguments
            if node in self.told:
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._task_body(node)
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.BinOp) and any(
                isinstance(node.op, ast.BitOr) and is_call(side, "s", "si")
                for side in (node.left, node.right)
            ):
                yield self._canvas(node, "chain")

    def _found(self, node: ast.AST, kind: str, write: str, code: str | None = None) -> Finding:
        text = code if code is not None else " ".join(ast.unparse(node).split())
        return Finding(self.file, getattr(node, "lineno", 0), kind, text, write)

    def _canvas(self, node: ast.Call | ast.BinOp, kind: str) -> Finding:
        self.told |= set(ast.walk(node))
        return self._found(node, kind, canvas(node, kind))

    def _is_result(self, node: ast.AST) -> bool:
        """Whether an expression is a result: of delay(), group(…)(), AsyncResult(…) and such."""
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Call):
            return self._celery_name(node.func.func) in CANVAS
        attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return attribute in STARTS | ASYNC_RESULT or self._celery_name(node.func) in ASYNC_RESULT

    def _is_canvas(self, node: ast.AST) -> bool:
        """Whether an expression is group(…)() or chord(…)(…)."""
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Call)
            and self._celery_name(node.func.func) in ("group", "chord")
        )

    def _celery_name(self, node: ast.AST) -> str:
        """Return the name in Celery of what is called, or ""."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[0] == "celery":
            return node.attr
        return ""

    def _task_body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
        """Yield what a bound task does with itself."""
        bound = any(
            isinstance(decorator, ast.Call)
            and ast.unparse(decorator.func).rpartition(".")[2] in ("task", "shared_task")
            and any(keyword.arg == "bind" for keyword in decorator.keywords)
            for decorator in node.decorator_list
        )
        if not bound or not node.args.args:
            return
        first = node.args.args[0].arg
        counted = {
            each.value
            for each in ast.walk(node)
            if isinstance(each, ast.Attribute) and each.attr == "retries"
        }
        for inner in ast.walk(node):
            if (
                isinstance(inner, ast.Attribute)
                and isinstance(inner.value, ast.Name)
                and inner.value.id == first
                and inner.attr in SELF
            ):
                code = " ".join(ast.unparse(inner).split())
                if inner not in counted:
                    yield self._found(inner, inner.attr, SELF[inner.attr], code)
                else:
                    yield self._found(inner, inner.attr, RETRIES, f"{code}.retries")

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        # group(…)() and chord(…)(callback) are one use
        name = self._celery_name(node.func.func if isinstance(node.func, ast.Call) else node.func)
        if name in CANVAS:
            yield self._canvas(node, name)
            return
        if not isinstance(node.func, ast.Attribute):
            return
        owner, attribute = node.func.value, node.func.attr
        is_task = ast.unparse(owner).rpartition(".")[2] in self.tasks
        if attribute == "apply_async":
            if is_task or not isinstance(owner, ast.Call):
                self.told |= {each for each in ast.walk(node) if is_call(each, "s", "si")}
                yield self._found(node, attribute, apply_async(node, owner))
        elif attribute in ("delay_on_commit", "apply_async_on_commit"):
            yield self._found(
                node, attribute, f"{ast.unparse(owner)}.delay(…): it is transactional"
            )
        elif attribute == "on_commit" and any(is_call(each, *STARTS) for each in ast.walk(node)):
            yield self._found(node, attribute, "call .delay() at once: it is transactional")
        elif attribute in ("s", "si", "subtask") and (is_task or attribute != "subtask"):
            yield self._found(node, attribute, f"{ast.unparse(owner)}.call(…)")
        elif attribute in ("map", "starmap", "chunks", "signature", "apply") and is_task:
            write = CANVAS.get(attribute, "call the function" if attribute == "apply" else "")
            yield self._found(node, attribute, write or CANVAS["xmap"])
        elif attribute == "retry" and (is_task or ast.unparse(owner) == "self"):
            yield self._found(node, attribute, retry(node))
        elif attribute == "send_task":
            yield self._found(node, attribute, "import the task, and call its .delay()")
        elif attribute in ("get", "join") and self._holds_result(owner, node):
            is_group = self._is_canvas(owner) or ast.unparse(owner) in self.groups
            yield self._found(node, attribute, WAIT_FOR_GROUP if is_group else WAIT)
        elif attribute == "revoke":
            yield self._found(node, attribute, "operations.control.cancel([job.pk])")
        elif attribute == "AsyncResult":
            yield self._found(node, attribute, "Job.objects.get(pk=…)")

    def _holds_result(self, owner: ast.AST, node: ast.Call) -> bool:
        own_words = any(k.arg in ("timeout", "propagate") for k in node.keywords)
        return own_words or self._is_result(owner) or ast.unparse(owner) in self.results


def _is_celery(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == "celery"
