"""The page of all public names: docs/reference/surface.md.

Names are read from the code. The sentence about a name is the first one of its docstring, or of the
row about it in the page that explains it. So nothing is written for this page alone.

Code is parsed, not imported, where an import would need a package that is not here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import django_tenantqueue

PACKAGE = Path(django_tenantqueue.__file__).parent
DOCS = Path(__file__).parents[1]
PAGE = DOCS / "reference" / "surface.md"
LONGEST = 60
"""Characters of a signature that is shown."""
Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign | None


# the code


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
        if isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef):
            if "property" not in self.decorators:
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


# the pages


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page explains a name."""

    link: str
    cells: tuple[str, ...] = ()
    """Of its row, or the paragraph about it, without the name."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page, outside of examples."""

    text: str
    link: str
    """To its section."""
    titles: tuple[str, ...]
    """The headings above it, without backquotes: of the page, the section, the part."""

    @property
    def is_heading(self) -> bool:
        return bool(self.titles) and bool(re.match(r"#{1,3} ", self.text))


@dataclass
class Pages:
    """The pages of the documentation, with the parts that are made from the code."""

    expand: Callable[[str], str]
    read_before: dict[str, list[Line]] = field(default_factory=dict)
    sections: dict[tuple[tuple[str, ...], str], list[Line]] = field(default_factory=dict)

    def read(self, page: str) -> list[Line]:
        """Return the lines of a page, a path below docs/."""
        if page not in self.read_before:
            self.read_before[page] = list(self._read(page))
        return self.read_before[page]

    def _read(self, page: str) -> Iterator[Line]:
        address = page.removeprefix("reference/") if "reference/" in page else f"../{page}"
        link, titles, fence, seen = address, tuple[str, ...](), "", dict[str, int]()
        for line in self.expand((DOCS / page).read_text()).splitlines():
            if line.lstrip().startswith("```"):
                is_example = not fence and "{py:" not in line
                fence = "" if fence else "example" if is_example else "directive"
            head = None if fence else re.match(r"(#{1,3}) (.+)", line)
            if head:
                level, slug = len(head[1]), slug_of(head[2])
                titles = (*titles[: level - 1], head[2].replace("`", ""))
                count = seen[slug] = seen.get(slug, -1) + 1
                link = address if level == 1 else f"{address}#{slug}{f'-{count}' * bool(count)}"
            if fence != "example":
                yield Line(line, link, titles)

    def section(self, pages: tuple[str, ...], under: str) -> list[Line]:
        """Return the lines of pages, or of their sections with a title."""
        if (pages, under) not in self.sections:
            lines = [line for page in pages for line in self.read(page)]
            if under:
                lines = [x for x in lines if any(under in each.split(", ") for each in x.titles)]
            self.sections[pages, under] = lines
        return self.sections[pages, under]

    def find(
        self, name: str, pages: Iterable[str], under: str = "", *, last: bool = False
    ) -> Place | None:
        """Return the place that defines a name, else its heading, else the first that mentions it.

        `under`: only in the section with this title. `last`: the last one that defines it.
        """
        word = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
        lines = self.section(tuple(pages), under)
        order = range(len(lines) - 1, -1, -1) if last else range(len(lines))
        for number in order:
            if place := _defined(name, lines, number):
                return place
        for line in lines:
            if line.is_heading and name in line.titles[-1].split(", "):
                return Place(line.link)
        for line, after in pairwise([*lines, *lines[-1:]]):
            if name not in line.text and name not in after.text:
                continue
            is_open = line.text.count("`") % 2  # a span that ends in the next line
            text = f"{line.text} {after.text}" if is_open else line.text
            if any(re.search(word, span) for span in re.findall(r"`([^`]+)`", text)):
                return Place(line.link)
        return None


def _defined(name: str, lines: list[Line], number: int) -> Place | None:
    line, page = lines[number], lines[number].link.partition("#")[0]
    if name not in line.text:
        return None
    own = rf"(?:await |[\w.]+\.)?{re.escape(name)}(?![\w-])"
    after = lines[number + 1].text if number + 1 < len(lines) else ""
    if line.text.startswith(("| `", "| [`", "| await `")):
        first, *rest = cells_of(line.text)
        if not any(re.match(own, span) for span in re.findall(r"`([^`]+)`", first)):
            return None
        cells = tuple(rest)
    elif re.match(rf"```\{{py:\w+\}} {own}", line.text):
        cells = (_paragraph(lines, number + 2),)
    elif after.startswith(": ") and re.search(rf"`{own}", line.text):
        cells = (_paragraph(lines, number + 1).removeprefix(": "),)
    else:
        return None
    return Place(line.link, tuple(cell.replace("](#", f"]({page}#") for cell in cells))


def _paragraph(lines: list[Line], number: int) -> str:
    while number < len(lines) and not lines[number].text:
        number += 1
    text = []
    while number < len(lines) and lines[number].text:
        text.append(lines[number].text.strip())
        number += 1
    return " ".join(text)


def slug_of(title: str) -> str:
    """Return the anchor of a heading, as MyST makes it."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower().replace(" ", "-"))


def cells_of(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, without the full stop."""
    line = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`\[(“\"*“])", line, maxsplit=1)[0].removesuffix(".")


def as_markdown(sentence: str) -> str:
    """Return a sentence of a docstring as the text of a cell."""
    parts = re.split(r"(`[^`]*`)", sentence)
    shown = [part if part.startswith("`") else part.replace("*", r"\*") for part in parts]
    return re.sub(r"(?<!\\)\|", r"\|", "".join(shown))


# the tables


@dataclass(frozen=True, slots=True)
class Row:
    """One public name."""

    names: tuple[str, ...]
    """As they are shown: with parameters, its async twin behind it."""
    text: str
    link: str = ""

    def __str__(self) -> str:
        first, *twins = (f"`{name.replace('|', chr(92) + '|')}`" for name in self.names)
        first = f"[{first}]({self.link})" if self.link else first
        return f"| {', '.join([first, *twins])} | {self.text} |"


@dataclass(frozen=True, slots=True)
class Table:
    """Names that are found in one place of the code."""

    title: str
    """Of a section; of a part of one with "### " in front."""
    intro: str
    rows: list[Row]

    def __str__(self) -> str:
        head = self.title if self.title.startswith("#") else f"## {self.title}"
        lines = ["| name | what it is |", "| --- | --- |", *map(str, self.rows)]
        parts = [head, *([self.intro] if self.intro else [])]
        return "\n\n".join([*parts, *(["\n".join(lines)] if self.rows else [])])


@dataclass
class Surface:
    """Makes the tables."""

    pages: Pages
    listed: set[tuple[str, str]] = field(default_factory=set)
    """(module, name) of what has a row."""

    def row(
        self,
        label: str,
        pages: Iterable[str],
        doc: str = "",
        *,
        name: str = "",
        twins: Iterable[str] = (),
        under: str = "",
        cell: int = -1,
        last: bool = False,
        default: str = "",
    ) -> Row:
        """Return the row of a name.

        `cell`: of its row in the page that explains it. `default`: the link where no page does.
        """
        place = self.pages.find(name or label.partition("(")[0], pages, under, last=last)
        text = as_markdown(first_sentence(doc))
        if not text and place and place.cells:
            filled = [each for each in place.cells if each] or [""]
            text = first_sentence(place.cells[cell] if cell >= 0 else filled[-1])
        return Row((label, *twins), text, place.link if place else default)

    def rows(
        self, found: Iterable[Found], pages: Iterable[str], under: str = "", *, last: bool = False
    ) -> list[Row]:
        """Return rows of definitions; async twins stand in the row of what they are twins of."""
        by_name = {each.name: each for each in found}
        self.listed |= {(each.module, name) for name, each in by_name.items()}
        twins: dict[str, list[str]] = {}
        for name, each in by_name.items():
            if each.twin_of in by_name:
                twins.setdefault(each.twin_of, []).append(name)
        rows = []
        for name, each in by_name.items():
            if each.twin_of not in by_name:
                word = each.value if under == "States" else name
                row = self.row(
                    each.label,
                    pages,
                    each.doc,
                    name=word,
                    twins=twins.get(name, ()),
                    under=under,
                    last=last,
                )
                text = row.text or (f"`{each.value}`" if each.value else "")
                rows.append(replace(row, text=text))
        return rows

    def module(
        self, module: str, pages: Iterable[str], names: Iterable[str] | None = None
    ) -> Table:
        """Return the table of the names that a module exports."""
        found = [definition(module, name) for name in names or exported(module)]
        return Table(f"`{module}`", "", self.rows(found, pages))

    def of_class(
        self,
        found: Found,
        pages: Iterable[str],
        *,
        under: str = "",
        title: str = "",
        own: bool = False,
        last: bool = False,
    ) -> Iterator[Table]:
        """Yield the table of the public names of a class, if it has some.

        Names count that the section about the class mentions: `under`, or else the one where the
        class is found. `own`: without those of its bases.
        """
        assert isinstance(found.node, ast.ClassDef)
        if not under:
            place = self.pages.find(found.name, pages)
            if place is None:
                return
            lines = self.pages.section(tuple(pages), "")
            under = next(line.titles[-1] for line in lines if line.link == place.link)
        names = definitions(found.module, found.node.body) if own else members(found)
        rows = self.rows(names.values(), pages, under, last=last)
        if rows := [row for row in rows if row.link and row.text]:
            yield Table(f"### {title or f'`{found.name}`'}", "", rows)

    # the sections, in the order of the page

    def apps(self) -> Iterator[Table]:
        """Apps for INSTALLED_APPS."""
        from django.apps import apps
        from from_code import installed_apps

        configs = {each.name: type(each) for each in apps.get_app_configs()}
        rows = [
            self.row(name, ["reference/apps.md"], configs[name].__doc__ or "")
            for name in installed_apps()
        ]
        yield Table("Apps", "For `INSTALLED_APPS`.", rows)

    def package(self) -> Iterator[Table]:
        """What `from django_tenantqueue import …` finds."""
        tasks, models = "reference/tasks.md", "reference/models.md"
        named = {
            name: definition(f"{PACKAGE.name}.{django_tenantqueue._HOMES[name]}", name)
            for name in django_tenantqueue.__all__
        }
        pages = ("reference/exceptions.md", tasks, models)
        yield Table("`django_tenantqueue`", "", self.rows(named.values(), pages))
        for name in (
            "Task",
            "BoundTask",
            "TaskHooks",
            "RunningJob",
            "Group",
            "Delayable",
            "Unique",
        ):
            yield from self.of_class(named[name], [tasks])
        for name in ("Cron", "Every"):
            yield from self.of_class(named[name], [tasks], under="task")
        yield from self.of_class(named["State"], ["reference/states.md"], under="States")
        yield from self.of_class(named["Priority"], [tasks])
        for name in ("JobMonitor", "MonitorSummary"):
            kind = definition(f"{PACKAGE.name}.execution.job_monitor", name)
            title = f"`current_job().{'monitor' if name == 'JobMonitor' else 'summary'}`"
            yield from self.of_class(kind, [tasks], under="current_job", title=title, last=True)

    def options(self) -> Iterator[Table]:
        """Options of jobs, tasks and groups."""
        yield Table("Options", "", [])
        for name, under, title in (
            ("JobOptions", "Options", "Of a job"),
            ("TaskOptions", "task", "Of `@task` alone"),
            ("GroupOptions", "group", "Of a group"),
        ):
            kind = definition(f"{PACKAGE.name}.calls.option_types", name)
            pages = ["reference/tasks.md"]
            yield from self.of_class(kind, pages, under=under, title=title, own=True)

    def control(self) -> Iterator[Table]:
        """What operators and programs do: verbs, reports, makers of apps."""
        page = ["reference/control.md"]
        verbs = f"{PACKAGE.name}.control"
        yield self.module(verbs, page)
        yield from self.of_class(definition(verbs, "Result"), page, under="Results")
        reports = f"{PACKAGE.name}.reports"
        yield self.module(reports, page)
        for name in exported(reports):
            found = definition(reports, name)
            if isinstance(found.node, ast.ClassDef):
                yield from self.of_class(found, page, under="Reports")
        for path in sorted(PACKAGE.glob("contrib/*/control.py")):
            yield self.module(module_of(path), page)

    def models(self) -> Iterator[Table]:
        """Models, with their columns, methods and querysets."""
        from django.apps import apps
        from from_code import installed_apps

        page = ["reference/models.md"]
        configs = {each.name: each for each in apps.get_app_configs()}
        kinds = [kind for name in installed_apps() for kind in configs[name].get_models()]
        rows, tables = [], []
        for kind in kinds:
            found = definition(kind.__module__, kind.__name__)
            self.listed.add((found.module, found.name))
            row = self.row(kind.__name__, page, found.doc)
            table = "a proxy" if kind._meta.proxy else f"table `{kind._meta.db_table}`"
            module = f"`{kind.__module__.partition('.models')[0]}.models`"
            rows.append(replace(row, text=f"{row.text} ({table}, in {module})"))
            tables += self.of_model(kind, found)
        yield Table("Models", "", rows)
        yield from tables

    def of_model(self, kind: Any, found: Found) -> Iterator[Table]:
        """Yield the table of a model, if it has public names of its own."""
        page, under = ["reference/models.md"], kind.__name__
        rows, columns = [], set()
        for each in kind._meta.local_fields:
            if each.column is None:  # a key of several columns
                continue
            names = list(dict.fromkeys((each.attname, each.name)))
            columns |= {*names}
            place = self.pages.find(each.column, page, under)
            text = first_sentence(place.cells[-1]) if place and place.cells else ""
            if not text:
                named = "primary key" if each.primary_key else str(each.verbose_name)
                text = as_markdown(first_sentence(str(each.help_text)) or named)
            rows.append(Row(tuple(names), text, place.link if place else ""))
        own = [each for name, each in members(found).items() if name not in {*columns, "objects"}]
        if not kind._meta.proxy:
            rows += [row for row in self.rows(own, page, under) if row.link and row.text]
        manager = type(kind._default_manager)
        for used in (manager, getattr(manager, "_queryset_class", manager)):
            if used.__module__.startswith(PACKAGE.name) and not kind._meta.proxy:
                names_of = members(definition(used.__module__, used.__name__)).values()
                rows += [
                    replace(row, names=tuple(f"objects.{name}" for name in row.names))
                    for row in self.rows(names_of, page, under)
                    if row.link and row.text
                ]
        if rows:
            yield Table(f"### `{kind.__name__}`", "", rows)

    def settings(self) -> Iterator[Table]:
        """Keys of TENANTQUEUE."""
        from from_code import all_settings

        yield Table("Settings", "", [])
        page, parts = ["reference/settings.md"], dict[str, list[Row]]()
        for each in all_settings():
            row = self.row(each.key, page, each.text, under=each.table)
            parts.setdefault(each.group, []).append(row)
        for group, rows in parts.items():
            yield Table(
                "### " + (f'`TENANTQUEUE["{group}"]`' if group else "`TENANTQUEUE`"), "", rows
            )

    def commands(self) -> Iterator[Table]:
        """Commands with their options, and the variables that set options."""
        from argparse import ArgumentParser

        from django.core.management import load_command_class
        from from_code import command_options, own_actions

        from django_tenantqueue.management.commands.tenantqueue import subcommands
        from django_tenantqueue.management.variables import take_variables

        yield Table("Commands", "Of `manage.py`.", [])
        for name in ("runworker", "workerhealth"):
            page = ["reference/runworker.md" if name == "runworker" else "reference/commands.md"]
            text = str(load_command_class(PACKAGE.name, name).help)
            yield self.of_command(name, page, text, f"manage.py {name}", command_options(name))
        for name, kind in subcommands().items():
            full = f"tenantqueue {name}"
            page = ["reference/commands.md"]
            yield self.of_command(full, page, str(kind.help), full, command_options(name))
        rows = []
        for action in own_actions("runworker"):
            for name in sorted(take_variables(ArgumentParser(), [action])):
                link = self.pages.find("TENANTQUEUE_", ["reference/runworker.md"])
                text = f"Sets `{action.option_strings[0]}` of `runworker`"
                rows.append(Row((name,), text, link.link if link else ""))
        yield Table("Environment variables", "", rows)

    def of_command(
        self,
        name: str,
        page: list[str],
        text: str,
        under: str,
        options: dict[str, tuple[str, str]],
    ) -> Table:
        """Return the table of a command: itself, and its options."""
        rows = [self.row(name, page, text, name=under)]
        for option, (takes, help_text) in options.items():
            row = self.row(f"{option} {takes}".strip(), page, help_text, name=option, under=under)
            rows.append(row)
        return Table(f"### `{name}`", "", rows)

    def exceptions(self) -> Iterator[Table]:
        """Exceptions by module, and the names of errors that are never raised."""
        page, parts = ["reference/exceptions.md"], dict[str, list[Row]]()
        yield Table("Exceptions", "", [])
        for each in exceptions():
            self.listed.add((each.module, each.name))
            row = self.row(each.name, page, each.doc)
            if ".celery." not in each.module and (names := attributes(each)):
                row = replace(row, text=f"{row.text}. Attributes: {', '.join(names)}")
            parts.setdefault(each.module, []).append(row)
        for module, rows in parts.items():
            yield Table(f"### `{module}`", "", rows)
        stored = f"{PACKAGE.name}.stored_error"
        names = [each for each in defined_in(stored) if each.isupper()]
        yield replace(self.module(stored, page, names), title=f"### `{stored}`")

    def signals(self) -> Iterator[Table]:
        """Signals."""
        module = f"{PACKAGE.name}.signals"
        own = defined_in(module).values()
        names = [each.name for each in own if each.value.startswith("TaskSignal(")]
        yield self.module(module, ["reference/signals.md"], names)

    def hooks(self) -> Iterator[Table]:
        """What an app of a project adds by a Feature."""
        module, page = f"{PACKAGE.name}.features", ["howto/own-apps.md"]
        kinds = [definition(module, name) for name in exported(module)]
        kinds = [each for each in kinds if isinstance(each.node, ast.ClassDef)]
        named = [each for each in kinds if self.pages.find(each.name, page)]
        yield Table(f"`{module}`", "", self.rows(named, page))
        for each in named:
            rows = self.rows(members(each).values(), page)
            yield Table(f"### `features.{each.name}`", "", [row for row in rows if row.text])

    def checks(self) -> Iterator[Table]:
        """System checks."""
        ids = sorted(
            {
                ast.literal_eval(keyword.value)
                for path in PACKAGE.rglob("*.py")
                if "django.core.checks" in path.read_text()
                for node in ast.walk(tree_of(module_of(path))[1])
                if isinstance(node, ast.Call)
                for keyword in node.keywords
                if keyword.arg == "id" and isinstance(keyword.value, ast.Constant)
            },
            key=lambda text: (text[-3:], text),
        )
        page = ["reference/checks.md"]
        yield Table("System checks", "", [self.row(text, page, cell=0) for text in ids])

    def templates(self) -> Iterator[Table]:
        """Template tags and filters of the libraries that pages tell to load."""
        page = ["reference/progress.md"]
        text = "".join(line.text for line in self.pages.read(page[0]))
        for library in dict.fromkeys(re.findall(r"\{% load (\w+) %\}", text)):
            module = f"{PACKAGE.name}.templatetags.{library}"
            own = defined_in(module).values()
            rows = self.rows(
                [each for each in own if any("register." in d for d in each.decorators)], page
            )
            yield Table("Template tags and filters", f"After `{{% load {library} %}}`.", rows)

    def testing(self) -> Iterator[Table]:
        """Helpers for tests, and fixtures of pytest."""
        page = ["reference/testing.md"]
        yield self.module(f"{PACKAGE.name}.testing", page)
        module = f"{PACKAGE.name}.pytest_plugin"
        own = defined_in(module).values()
        rows = [
            self.row(each.name, page, each.doc, under="Fixtures for pytest")
            for each in own
            if any("fixture" in d for d in each.decorators)
        ]
        yield Table("### Fixtures of pytest", "", rows)

    def conditions(self) -> Iterator[Table]:
        """Codes of conditions."""
        from django_tenantqueue.status.conditions import conditions

        page = ["reference/conditions.md"]
        rows = []
        for each in conditions():
            rows.append(self.row(str(each.code), page, str(each.title or ""), cell=1))
        yield Table("Conditions", "In JSON, metrics and alert rules.", rows)

    def metrics(self) -> Iterator[Table]:
        """Metrics."""
        from django_tenantqueue.contrib.prometheus.families import FAMILIES

        names = [each.samples[0] if each.kind == "counter" else each.name for each in FAMILIES]
        rows = [self.row(name, ["reference/metrics.md"]) for name in names]
        yield Table("Metrics", "", rows)

    def urls(self) -> Iterator[Table]:
        """URLs that a project includes."""
        yield Table("URLs", "", [])
        for module, pages in (
            ("web.urls", ["reference/status.md", "howto/metrics.md"]),
            ("contrib.fireworq.urls", ["howto/fireworq.md"]),
        ):
            found = import_module(f"{PACKAGE.name}.{module}")
            rows = [
                self.row(
                    f"{found.app_name}:{each.name}",
                    pages,
                    each.callback.__doc__ or "",
                    name=str(each.pattern),
                    default=self.pages.read(pages[0])[0].link,
                )
                for each in found.urlpatterns
                if each.name
            ]
            yield Table(f"### `{PACKAGE.name}.{module}`", "By their names.", rows)
        page = "reference/http-api.md"
        rows = []
        for line in self.pages.read(page):
            if request := re.match(r"\| `([A-Z]+ /[^`]*)` \|", line.text):
                rows.append(self.row(request[1], [page], cell=0, under=line.titles[-1]))
        yield Table(f"### `{PACKAGE.name}.contrib.api.urls`", "By their requests.", rows)

    def others(self) -> Iterator[Table]:
        """Names that pages import, or give as dotted paths, and that stand in no other table."""
        rows: dict[str, Row] = {}
        kinds: list[Table] = []
        pages = [
            str(path.relative_to(DOCS))
            for folder in ("reference", "howto")
            for path in sorted((DOCS / folder).glob("*.md"))
            if path != PAGE
        ]
        for page in ("tutorial.md", *pages):
            for path in named_in((DOCS / page).read_text()):
                module, _, name = path.rpartition(".")
                try:
                    each = definition(module, name)
                except (LookupError, OSError):
                    continue  # a module, or a name of another version
                if (each.module, name) in self.listed:
                    continue
                self.listed.add((each.module, name))
                beside, before = defined_in(each.module), path.removesuffix(name)
                rows[path] = self.row(
                    before + each.label,
                    [page],
                    each.doc,
                    name=name,
                    twins=[
                        before + twin for twin, other in beside.items() if other.twin_of == name
                    ],
                    default=self.pages.read(page)[0].link,
                )
                if isinstance(each.node, ast.ClassDef):
                    kinds += self.of_class(each, [page])
        yield Table("Other modules", "", [rows[path] for path in sorted(rows)])
        yield from sorted(kinds, key=lambda table: table.title)


def named_in(text: str) -> list[str]:
    """Return the dotted paths of what a page imports or names."""
    paths = []
    for module, names in re.findall(
        rf"from ({PACKAGE.name}[\w.]*) import (\([^)]*\)|[^\n`;]*)", text
    ):
        paths += [f"{module}.{name}" for name in re.findall(r"\w+", names.partition("#")[0])]
    return paths + re.findall(rf"[\"`]({PACKAGE.name}\.[\w.]+\.\w+)[\"`(]", text)


def attributes(found: Found) -> list[str]:
    """Return the attributes that an exception sets, in backquotes."""
    source = ast.unparse(found.node) if found.node else ""
    return [
        f"`{name}`" for name in dict.fromkeys(re.findall(r"self\.([a-z]\w*)(?:: .+)? =", source))
    ]


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


def surface_tables(expand: Callable[[str], str]) -> list[Table]:
    """Return all tables of the page. `expand` renews the parts of a page."""
    pages = Pages(lambda text: text if "<!-- from the code: surface -->" in text else expand(text))
    found = Surface(pages)
    sections = (
        found.apps,
        found.package,
        found.options,
        found.control,
        found.models,
        found.settings,
        found.commands,
        found.exceptions,
        found.signals,
        found.hooks,
        found.checks,
        found.templates,
        found.testing,
        found.conditions,
        found.metrics,
        found.urls,
    )
    tables = [table for section in sections for table in section()]
    return [*tables, *found.others()]


def surface_page(expand: Callable[[str], str]) -> str:
    """Return the part of the page that is made from the code."""
    return "\n\n".join(map(str, surface_tables(expand)))
