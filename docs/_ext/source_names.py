"""Names that the package defines, with their docstrings, read from its source.

It is parsed, not imported: an import may need a package that is not here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import django_tenantqueue

PACKAGE = Path(django_tenantqueue.__file__).parent
LONGEST = 60
"""Characters of a signature that is shown."""
Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign | None


@dataclass(frozen=True, slots=True)
class Found:
    """A definition in a module or a class."""

    name: str
    module: str
    node: Node
    doc: str = ""
    twin_of: str = ""
    """The name whose async twin it is."""

    @property
    def label(self) -> str:
        """The name with its parameters, where it is called and they are short."""
        is_function = isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and "property" not in self.decorators:
            return f"{self.name}({parameters(self.node.args)})"
        return self.name

    @property
    def decorators(self) -> list[str]:
        """Its decorators, as source."""
        return [ast.unparse(each) for each in getattr(self.node, "decorator_list", ())]

    @property
    def value(self) -> str:
        """What is assigned to it, as source; of a pair the text before the label."""
        value = getattr(self.node, "value", None)
        if isinstance(value, ast.Tuple) and value.elts:
            return str(ast.literal_eval(value.elts[0]))
        return "" if value is None else ast.unparse(value)


def parameters(given: ast.arguments) -> str:
    """Return parameters without types and `self`; "…" if they are long."""
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    shown = [*names[: len(names) - len(given.defaults)]]
    for name, default in zip(names[len(shown) :], given.defaults, strict=True):
        shown.append(f"{name}={ast.unparse(default)}")
    if given.posonlyargs and len(given.posonlyargs) < len(names):
        shown.insert(len(given.posonlyargs), "/")
    hidden = {"more", "unknown"}  # they take what is an error
    if given.vararg and given.vararg.arg not in hidden:
        shown.append(f"*{given.vararg.arg}")
    elif given.kwonlyargs:
        shown.append("*")
    for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        shown.append(each.arg if value is None else f"{each.arg}={ast.unparse(value)}")
    if given.kwarg and given.kwarg.arg not in hidden:
        shown.append(f"**{given.kwarg.arg}")
    text = ", ".join(shown[1:] if shown[:1] in (["self"], ["cls"]) else shown)
    return text.removeprefix("/, ").replace("'", '"') if len(text) <= LONGEST else "…"


@cache
def tree_of(module: str) -> tuple[Path, ast.Module]:
    """Return the file of a module of the package, parsed."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path, ast.parse(path.read_text())


def module_of(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def definitions(module: str, body: list[ast.stmt]) -> dict[str, Found]:
    """Return what the body of a module or class defines, private names included."""
    found: dict[str, Found] = {}
    for number, node in enumerate(body):
        after = body[number + 1] if number + 1 < len(body) else None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = Found(
                node.name, module, node, doc := ast.get_docstring(node) or "", _says_see(doc)
            )
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "__slots__" and isinstance(node.value, ast.Tuple):
                names = [ast.literal_eval(each) for each in node.value.elts]
                found |= {name: Found(name, module, None) for name in names}
            elif isinstance(target, ast.Name):
                if "init=False" in ast.unparse(node):
                    continue  # the package's own
                doc = _text(after)
                twin_of = _made_twin(node.value) or _says_see(doc)
                found[target.id] = Found(target.id, module, node, doc, twin_of)
    return found


@cache
def defined_in(module: str) -> dict[str, Found]:
    """Return what a module of the package defines, private names included."""
    return definitions(module, tree_of(module)[1].body)


def _text(node: ast.stmt | None) -> str:
    """Return the string that a statement is, as those below fields are."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return ""


def _made_twin(value: ast.expr | None) -> str:
    is_twin = isinstance(value, ast.Call) and ast.unparse(value.func) == "twin"
    return ast.unparse(value.args[0]) if is_twin else ""  # type: ignore[union-attr]


def _says_see(doc: str) -> str:
    said = re.match(r"See (\w+)(\(\))?[.:]", doc)
    return said[1] if said else ""


@cache
def imported(module: str, name: str) -> str:
    """Return the module of the package from which another one imports a name; "" for none."""
    path, tree = tree_of(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in {a.asname or a.name for a in node.names}:
            base = module.split(".")
            if path.name != "__init__.py":
                base = base[:-1]
            base = base[: len(base) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            return target if target.startswith(PACKAGE.name) else ""
    return ""


def definition(module: str, name: str) -> Found:
    """Return where a name of a module is defined. Raises LookupError."""
    if name in defined_in(module):
        return defined_in(module)[name]
    if source := imported(module, name):
        return definition(source, name)
    path, _ = tree_of(module)
    if path.name == "__init__.py":  # which may import late
        for each in sorted(path.parent.glob("*.py")):
            if name in defined_in(module_of(each)):
                return defined_in(module_of(each))[name]
    raise LookupError(f"{module} does not define {name}")


def exported(module: str) -> list[str]:
    """Return the names in `__all__` of a module; without it, those of functions and classes."""
    _, tree = tree_of(module)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    own = defined_in(module).values()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [each.name for each in own if isinstance(each.node, kinds) and is_public(each.name)]


def is_public(name: str) -> bool:
    """Whether a name has no underscore in front."""
    return not name.startswith("_")


def members(found: Found) -> dict[str, Found]:
    """Return the public names of a class and of its bases in the package, in their order.

    What stands below `if not TYPE_CHECKING` is left out: it names mistakes.
    """
    assert isinstance(found.node, ast.ClassDef)
    result: dict[str, Found] = {}
    for base in found.node.bases:
        name = ast.unparse(base).split("[")[0].rpartition(".")[2]
        try:
            above = definition(found.module, name)
        except LookupError:
            continue  # of Django, or of Python
        if isinstance(above.node, ast.ClassDef):
            result |= members(above)
    for name, each in definitions(found.module, found.node.body).items():
        inherited = result.get(name)
        if inherited is not None and not each.doc:
            continue
        result[name] = each
    return {name: each for name, each in result.items() if is_public(name)}


def is_typed_dict(found: Found) -> bool:
    """Whether a class says which keywords something takes."""
    bases = {ast.unparse(base) for base in getattr(found.node, "bases", ())}
    return bool(bases & {"TypedDict", "JobOptions"})


def parts_of(found: Found) -> Iterator[tuple[Found, str]]:
    """Yield the classes of the objects that `current_job()` has, each with how it is got."""
    for name, each in members(found).items():
        if "property" in each.decorators:
            kind = ast.unparse(each.node.returns).partition(" |")[0]  # type: ignore[union-attr]
            try:
                part = definition(each.module, kind)
            except LookupError:
                continue  # of Python
            if isinstance(part.node, ast.ClassDef) and ".models." not in part.module:
                yield part, f"`current_job().{name}`"


def exceptions() -> list[Found]:
    """Return the exceptions of the package, by the names of their bases."""
    known, found = {"TenantQueueError"}, dict[str, Found]()
    files = sorted(PACKAGE.rglob("*.py"), key=lambda path: ("contrib" in path.parts, path))
    modules = [module_of(path) for path in files if "migrations" not in path.parts]
    while True:
        before = len(found)
        for module in modules:
            for each in defined_in(module).values():
                if isinstance(each.node, ast.ClassDef) and is_public(each.name):
                    bases = {ast.unparse(base).rpartition(".")[2] for base in each.node.bases}
                    if each.name == "TenantQueueError" or bases & known:
                        known.add(each.name)
                        found.setdefault(f"{module}.{each.name}", each)
        if len(found) == before:
            return sorted(found.values(), key=lambda each: "contrib" in each.module)


def attributes(found: Found) -> list[str]:
    """Return the attributes that an exception sets, in backquotes."""
    source = ast.unparse(found.node) if found.node else ""
    return [
        f"`{name}`" for name in dict.fromkeys(re.findall(r"self\.([a-z]\w*)(?:: .+)? =", source))
    ]
