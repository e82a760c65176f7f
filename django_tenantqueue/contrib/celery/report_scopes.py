"""Finds the kind of each name in a project's source: task, result, app, …"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .report_names import MADE_BY, STARTS, TABLES, Entry

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
THEIR_APP = re.compile(r"^(?!celery\.|django_celery).*\bcelery(_?app)?\.(celery_?)?app$")


@dataclass(eq=False)
class Scope:
    """The names of a module, class or function: nodes, full names, or None for unknown ones."""

    module: Module
    parent: Scope | None = None
    is_class: bool = False
    names: dict[str, list[Any]] = field(default_factory=dict)


class Module:
    """A file."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.tree = ast.parse(source)
        self.lines = source.split("\n")
        folder, parts = path.resolve().parent, [path.stem] * (path.stem != "__init__")
        while (folder / "__init__.py").exists():
            folder, parts = folder.parent, [folder.name, *parts]
        self.name = ".".join(parts)
        self.scopes: dict[ast.AST, Scope] = {}
        self.bind(self.tree, Scope(self))

    def bind(self, node: ast.AST, scope: Scope) -> None:
        self.scopes[node] = scope
        for child in ast.iter_child_nodes(node):
            inner = scope
            for name, value in self.assigned(child):
                scope.names.setdefault(name, []).append(value)
            if isinstance(child, ast.ClassDef):
                inner = Scope(self, scope, is_class=True)
            elif isinstance(child, FUNCTIONS):
                of, decorators = child.args, getattr(child, "decorator_list", [])
                every = [*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg]
                inner = Scope(self, scope, names={each.arg: [each] for each in every if each})
                options = [each.arg for one in decorators for each in getattr(one, "keywords", ())]
                is_method = isinstance(node, ast.ClassDef) and not decorators
                if of.args and ("bind" in options or is_method):
                    inner.names[of.args[0].arg] = [("bound", node if is_method else child)]
            self.bind(child, inner)

    def assigned(self, node: ast.AST) -> Iterator[tuple[str, Any]]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                full = self.imported(node, alias)
                name = alias.asname or alias.name.partition(".")[0]
                yield name, name if isinstance(node, ast.Import) and not alias.asname else full
        elif isinstance(node, (ast.ClassDef, *FUNCTIONS[:2])):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    target.ctx = ast.Load()  # it is noted here
                    yield target.id, node.value
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, None

    def imported(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
        if isinstance(node, ast.Import):
            return alias.name
        package = self.name.split(".")[: None if self.path.stem == "__init__" else -1]
        kept = package[: len(package) - node.level + 1] if node.level else []
        return ".".join([*kept, *filter(None, [node.module]), alias.name])


class Project:
    """All files. Kinds are "@task", "@result", …, a full name, or "" if not known."""

    def __init__(self, modules: list[Module]) -> None:
        self.modules = {module.name: module for module in modules}
        self.known: dict[tuple[int, int], str] = {}

    def look_up(self, full: str) -> str:
        head, rest = full, list[str]()
        while head and head not in self.modules:
            head, _, last = head.rpartition(".")
            rest.insert(0, last)
        unknown = "@app" if THEIR_APP.search(full) else ""
        if not head:
            return unknown or full
        if not rest:
            return f"@module {full}"
        module = self.modules[head]
        what = self.name(rest[0], module.scopes[module.tree])
        for part in rest[1:]:
            what = self.attribute(what, part)
        return what or unknown

    def name(self, name: str, scope: Scope) -> str:
        at: Scope | None = scope
        while at is not None and (name not in at.names or (at.is_class and at is not scope)):
            at = at.parent
        found = {self.value(value, at) for value in at.names[name]} if at is not None else {""}
        return found.pop() if len(found) == 1 else ""

    def attribute(self, what: str, name: str) -> str:
        if what.startswith("@module "):
            return self.look_up(f"{what[8:]}.{name}")
        role = as_role(what)
        if role.startswith(("@", "->")):
            return TABLES.get(role, {}).get(name, Entry("")).what
        if what and name in STARTS:  # of a task of another package
            return "->@result"
        return f"{what}.{name}" if what else ""

    def value(self, value: Any, scope: Scope) -> str:
        key = (id(value), id(scope))
        if key not in self.known:
            self.known[key] = ""  # where it is made of itself
            self.known[key] = self._value(value, scope)
        return self.known[key]

    def role(self, value: Any, scope: Scope) -> str:
        return as_role(self.value(value, scope))

    def _value(self, value: Any, scope: Scope) -> str:
        match value:
            case str():
                return self.look_up(value)
            case ast.Name():
                return self.name(value.id, scope)
            case ast.Attribute():
                return self.attribute(self.value(value.value, scope), value.attr)
            case ast.Subscript():  # Celery[…]
                what = self.value(value.value, scope)
                return what if as_role(what) in MADE_BY else ""
            case ast.BinOp(op=ast.BitOr()):
                both = [self.value(side, scope) for side in (value.left, value.right)]
                return "@canvas" if "@canvas" in both else ""
            case ast.Call():
                what = self.role(value.func, scope)
                if what == "@decorator":
                    is_plain = value.args and self.role(value.args[0], scope) != "@task_class"
                    return "@task" if is_plain else what
                return {**MADE_BY, "@canvas": "@result"}.get(what, what[2:] * (what[:2] == "->"))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if "@decorator" in [self.role(each, scope) for each in value.decorator_list]:
                    return "@task"
                inside = scope.module.scopes[value]
                returned = [each.value for each in ast.walk(value) if isinstance(each, ast.Return)]
                what = ",".join({self.role(each, inside) for each in returned})
                return f"->{what}" if what in ("@result", "@canvas", "@app", "@decorator") else ""
            case ast.ClassDef():
                bases = [self.role(base, scope) for base in value.bases]
                return next((each for each in bases if each in MADE_BY), "")
            case ast.arg() if value.annotation and scope.parent:
                return MADE_BY.get(self.role(value.annotation, scope.parent), "")
            case ("bound", owner) if scope.parent:
                is_task = self.name(owner.name, scope.parent).startswith("@task")
                return "@task" if is_task else ""
        return ""


def as_role(what: str) -> str:
    is_celery = what.startswith("celery.")
    return TABLES["roles"].get(what.rpartition(".")[2], Entry(what)).section if is_celery else what
