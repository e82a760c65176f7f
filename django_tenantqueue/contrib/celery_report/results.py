"""Which variables of a file hold a result of Celery, or what starts one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from .names import STARTS
from .rewriting import is_call

CANVASES = ("chain", "chord", "group")
KINDS = {"AsyncResult": "job", "GroupResult": "group", "ResultSet": "group"}


class Results:
    """The results in one file. A kind is "job", or the canvas that was started."""

    def __init__(self, tree: ast.Module, imported: Mapping[str, str]) -> None:
        self._imported = imported
        self._scopes: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(tree):  # inner functions come later
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._scopes.update(dict.fromkeys(ast.walk(node), node))
        self._tree = tree
        self._results: dict[tuple[ast.AST | None, str], str] = {}
        self._canvases: dict[tuple[ast.AST | None, str], str] = {}
        self._returned: Mapping[str, str] = {}
        self.learn({})

    def learn(self, returned: Mapping[str, str]) -> None:
        """Find the variables. `returned`: functions that return a result, with its kind."""
        self._returned = returned
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if kind := self.canvas_of(node.value):
                        self._canvases[self._key(target)] = kind
                    if kind := self.kind_of(node.value):
                        self._results[self._key(target)] = kind

    def returned(self) -> Iterator[tuple[str, str]]:
        """Yield the functions of this file that return a result, with its kind."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Return) and node.value is not None:
                scope = self._scopes.get(node)
                if isinstance(scope, ast.FunctionDef) and (kind := self.kind_of(node.value)):
                    yield scope.name, kind

    def name_of(self, node: ast.AST) -> str:
        """Return the name in Celery of what is called, or ""."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, "")
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[0] == "celery":
            return node.attr
        return ""

    def canvas_of(self, node: ast.AST) -> str:
        """Return "chain", "chord" or "group" for an expression or a variable of it; or ""."""
        if isinstance(node, ast.BinOp):
            piped = isinstance(node.op, ast.BitOr) and (
                is_call(node.left, "s", "si") or is_call(node.right, "s", "si")
            )
            return "chain" if piped else ""
        if isinstance(node, ast.Call):
            name = self.name_of(node.func)
            return name if name in CANVASES else ""
        return self._find(self._canvases, node)

    def kind_of(self, node: ast.AST) -> str:
        """Return the kind of a result; "" for another expression."""
        if not isinstance(node, ast.Call):
            return self._find(self._results, node)
        func = node.func
        if name := self.canvas_of(func):  # group(…)(), or a variable that is called
            return name
        if returned := self._returned.get(ast.unparse(func).rpartition(".")[2]):
            return returned
        if not isinstance(func, ast.Attribute):
            return KINDS.get(self.name_of(func), "")
        if func.attr in STARTS:
            return self.canvas_of(func.value) or "job"
        if func.attr == "restore":
            return KINDS.get(self.name_of(func.value), "")
        return KINDS.get(func.attr, "")

    def _key(self, node: ast.AST) -> tuple[ast.AST | None, str]:
        return self._scopes.get(node), ast.unparse(node)

    def _find(self, known: Mapping[tuple[ast.AST | None, str], str], node: ast.AST) -> str:
        if not isinstance(node, ast.Name | ast.Attribute):
            return ""
        scope, text = self._key(node)
        return known.get((scope, text)) or known.get((None, text), "")
