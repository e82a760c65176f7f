"""The tables of all public names, on docs/reference/surface.md.

Names are read from the code. The sentence about a name is the first one of its docstring, or of the
row about it in the page that explains it. So nothing is written for this page alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from page_names import DOCS, Pages, as_markdown, first_sentence, named_in
from source_names import (
    PACKAGE,
    Found,
    attributes,
    defined_in,
    definition,
    definitions,
    exceptions,
    exported,
    is_public,
    is_typed_dict,
    members,
    module_of,
    parts_of,
    tree_of,
)

import django_tenantqueue

PAGE = DOCS / "reference" / "surface.md"


@dataclass(frozen=True, slots=True)
class Row:
    """One public name."""

    names: tuple[str, ...]
    """With parameters, which are not shown, and with its async twin behind it."""
    text: str
    """What the linked page says of it, in one sentence. Not shown: two pages would say it."""
    link: str = ""
    note: str = ""
    """What is shown behind the names."""

    def __str__(self) -> str:
        first, *twins = (f"`{re.sub(r'[(].+', '()', name)}`" for name in self.names)
        first = f"[{first}]({self.link})" if self.link else first
        return f"- {', '.join([first, *twins])}{self.note and f' – {self.note}'}"


def joined(rows: Iterable[Row]) -> list[Row]:
    """Return rows in which names that one row of a page explains together have one row here."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.text or row.names[0], row.link
        before = found.get(key)
        found[key] = row if before is None else replace(row, names=before.names + row.names)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Table:
    """Names that are found in one place of the code."""

    title: str
    """Of a section; of a part of one with "### " in front."""
    intro: str
    rows: list[Row]

    def __str__(self) -> str:
        head = self.title if self.title.startswith("#") else f"## {self.title}"
        lines = [*map(str, self.rows)]
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
        text = text[:1].upper() + text[1:]
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
                is_word = re.fullmatch(r"-?\w+", each.value)
                text = row.text or (f"`{each.value}`" if is_word else "")
                rows.append(replace(row, text=text))
        return joined(rows)

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
        others = {each.name for each in exceptions()} | set(exported(f"{PACKAGE.name}.models"))
        for name, each in named.items():
            if not isinstance(each.node, ast.ClassDef) or name in others or is_typed_dict(each):
                continue
            if name == "State":
                yield from self.of_class(each, ["reference/states.md"], under="States")
            else:
                yield from self.of_class(each, [tasks])
        for kind, title in parts_of(named["RunningJob"]):
            yield from self.of_class(kind, [tasks], under="current_job", title=title, last=True)

    def options(self) -> Iterator[Table]:
        """Options of jobs, tasks and groups."""
        yield Table("Options", "", [])
        sections = {"JobOptions": "Options", "TaskOptions": "task", "GroupOptions": "group"}
        module = f"{PACKAGE.name}.{django_tenantqueue._HOMES['JobOptions']}"
        for name in exported(module):
            yield from self.of_class(
                definition(module, name),
                ["reference/tasks.md"],
                under=sections.get(name, ""),
                own=True,
            )

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
            rows.append(self.row(kind.__name__, page, found.doc))
            tables += self.of_model(kind, found)
        yield Table("Models", "", rows)
        yield from tables

    def of_model(self, kind: Any, found: Found) -> Iterator[Table]:
        """Yield the table of a model, if it has public names of its own."""
        page, under = ["reference/models.md"], kind.__name__
        rows, columns = [], set()
        section = self.pages.find(under, page)
        for each in kind._meta.local_fields:
            if each.column is None:  # a key of several columns
                continue
            names = list(dict.fromkeys((each.attname, each.name)))
            columns |= {*names}
            place = self.pages.find(each.column, page, under) or section
            text = first_sentence(place.cells[-1]) if place and place.cells else ""
            if not text:
                named = "primary key" if each.primary_key else str(each.verbose_name)
                text = as_markdown(first_sentence(str(each.help_text)) or named)
            text = text[:1].upper() + text[1:]
            rows.append(Row(tuple(names), text, place.link if place else ""))
        rows = joined(rows)
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
        from from_code import COMMON, command_options, own_actions

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
        rows = [self.row(option, page, text) for option, text in COMMON.items()]
        yield Table("### Options of most subcommands", "", rows)
        rows = []
        for action in own_actions("runworker"):
            for name in sorted(take_variables(ArgumentParser(), [action])):
                link = self.pages.find("TENANTQUEUE_", ["reference/runworker.md"])
                rows.append(Row((name,), name, link.link if link else ""))
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
        for option, (_, help_text) in options.items():
            row = self.row(option, page, help_text, name=option, under=under)
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
                row = replace(row, note=f"attributes {', '.join(names)}")
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
        names = [each.name for each in own if "Signal(" in each.value]
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
        """Template tags and filters of the libraries that pages load."""
        page = ["reference/progress.md"]
        text = "".join(line.text for line in self.pages.read(page[0]))
        for library in dict.fromkeys(re.findall(r"\{% load (\w+) %\}", text)):
            module = f"{PACKAGE.name}.templatetags.{library}"
            own = defined_in(module).values()
            rows = self.rows(
                [
                    each
                    for each in own
                    if is_public(each.name) and "register." in str(each.decorators)
                ],
                page,
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
            ("web.urls", ["reference/status.md", "howto/metrics.md", "howto/shards.md"]),
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
