"""Parts of the documentation that are made from the code, and stored in its pages.

A page asks for a part with a line of its own, `<!-- from the code: settings -->`. `make reference`
writes the part below that line, and `<!-- end of settings -->` after it. A part that is out of date
fails tests/test_docs.py, and is a warning of the build.

    python docs/_ext/from_code.py            writes the pages
    python docs/_ext/from_code.py --check    names those that are out of date
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import tomllib
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from claim_diagrams import draw_next_job, draw_turns
from death_diagram import draw_death
from django.utils.module_loading import import_string
from gates_diagram import draw_gates
from house_diagram import draw_house
from http_operations import operations_tables
from job_life_diagram import draw_job_life
from line_diagrams import draw_monitor, draw_session
from overview_diagram import draw_overview
from partitions_diagram import draw_partitions
from simulation_diagrams import day_table, draw_fleet_cost, draw_fleet_day
from state_diagram import draw_states
from surface import surface_page

import django_tenantqueue

DOCS = Path(__file__).parents[1]
PACKAGE = Path(django_tenantqueue.__file__).parent


def installed_apps() -> list[str]:
    """Return the apps of the package."""
    optional = sorted(path.parent.name for path in PACKAGE.glob("contrib/*/apps.py"))
    return ["django_tenantqueue", *(f"django_tenantqueue.contrib.{name}" for name in optional)]


PART = re.compile(
    r"^<!-- from the code: ([a-z-]+) -->\n(?:.*?^<!-- end of \1 -->\n)?", re.MULTILINE | re.DOTALL
)


def expand(text: str) -> str:
    """Return a page with its parts renewed; KeyError for a part that does not exist."""

    def renew(match: re.Match[str]) -> str:
        name = match[1]
        made = (PARTS[name]() if name in PARTS else options_table(name)).strip()
        return f"<!-- from the code: {name} -->\n\n{made}\n\n<!-- end of {name} -->\n"

    return PART.sub(renew, text)


def stale() -> dict[Path, str]:
    """Return the files that are out of date, with what they should contain."""
    pages = [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts]
    wanted = {path: expand(path.read_text()) for path in pages}
    wanted |= {DOCS / "images" / name: draw() for name, draw in DIAGRAMS.items()}
    return {
        path: text for path, text in wanted.items() if not path.exists() or path.read_text() != text
    }


def wrap(paragraph: str) -> str:
    """Return a paragraph in lines of up to 100 characters, none of which begins like a list."""
    lines = textwrap.wrap(paragraph, 100, break_long_words=False, break_on_hyphens=False)
    for number in range(len(lines) - 1, 0, -1):
        if re.match(r"([-+*#>=|]|\d+[.)])(\s|$)", lines[number]):
            lines[number - 1 : number + 1] = [f"{lines[number - 1]} {lines[number]}"]
    return "\n".join(lines)


# settings


def field_docs(path: Path, class_name: str) -> dict[str, str]:
    """Return the string below each annotated field of a class, as one line."""
    tree = ast.parse(path.read_text())
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name).body
    docs: dict[str, str] = {}
    for field, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            docs[field.target.id] = " ".join(str(after.value.value).split()) if said else ""
    return docs


@dataclass(frozen=True)
class Setting:
    """One key of TENANTQUEUE, as the reference shows it."""

    group: str
    """The dict that has it; "" is TENANTQUEUE itself."""
    table: str
    """The title of its table."""
    key: str
    shape: str
    default: str
    text: str
    why: str

    def row(self) -> str:
        cells = f"`{self.key}`", self.shape, self.default, self.text, self.why
        return f"| {' | '.join(cells)} |"


def settings() -> str:
    """Return a table for each part of the core's settings, and for each app with settings."""
    parts: dict[str, list[str]] = {}
    for each in all_settings():
        parts.setdefault(each.table, []).append(each.row())
    return "\n\n".join(
        "\n".join(
            [
                f"## {table}\n",
                *_app_line(table),
                "| key | type | default | meaning | why this default |",
                "| --- | --- | --- | --- | --- |",
                *rows,
            ]
        )
        for table, rows in parts.items()
    )


def _app_line(table: str) -> list[str]:
    from django_tenantqueue.conf import settings_kinds

    kind = next((kind for kind in settings_kinds() if kind.group == table), None)
    if kind is None:
        return []
    app = kind.__module__.rpartition(".")[0]
    return [wrap(f'Keys of `TENANTQUEUE["{table}"]`, of the app `{app}`.') + "\n"]


def all_settings() -> list[Setting]:
    """Return the settings of the core, then those of the features."""
    from dataclasses import fields
    from typing import get_type_hints

    from django_tenantqueue.conf import settings_kinds, shape_of

    found = []
    for kind in settings_kinds():
        path, defaults, hints = Path(inspect.getfile(kind)), kind(), get_type_hints(kind)
        texts, titles = field_paragraphs(path, kind.__name__), field_titles(path, kind.__name__)
        for field in fields(kind):
            name, hint = field.name, hints[field.name]
            text, why = [*texts.get(name, ()), "", ""][:2]
            shape = re.sub(r"\ba (?=list|dict|duration)", "", shape_of(hint))
            default = shown_default(getattr(defaults, name), hint)
            table = kind.group or titles[name]
            found.append(Setting(kind.group, table, name.upper(), shape, default, text, why))
    return found


def shown_default(value: Any, hint: Any) -> str:
    """Return the default of a setting as a cell of a table."""
    if isinstance(value, tuple) and value:
        return ", ".join(f"`{entry}`" for entry in value)
    if isinstance(value, tuple):
        return "`[]`"
    if isinstance(value, float):
        return shown_duration(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"`{value:_}`"
    return f"`{value!r}`"


def shown_duration(seconds: float) -> str:
    """Return a duration in its largest whole unit: "7 days"."""
    units = (("day", 86_400), ("hour", 3600), ("second", 1))
    unit, size = next((u, s) for u, s in units if seconds % s == 0)
    return f"{seconds / size:g} {unit}{'' if seconds == size else 's'}"


def field_paragraphs(path: Path, class_name: str) -> dict[str, list[str]]:
    """Return the paragraphs of the string below each annotated field of a class, as lines."""
    tree = ast.parse(path.read_text())
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name).body
    return {
        field.target.id: [" ".join(p.split()) for p in after.value.value.split("\n\n")]
        for field, after in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }


def field_titles(path: Path, class_name: str) -> dict[str, str]:
    """Return the comment above each annotated field of a class, or above one before it."""
    titles: dict[str, str] = {}
    title, is_inside = "", False
    for line in path.read_text().splitlines():
        if line.startswith("class "):
            is_inside = line.startswith(f"class {class_name}:")
        elif is_inside and (comment := re.match(r"    # (.+)$", line)):
            title = comment[1]
        elif is_inside and (field := re.match(r"    (\w+): ", line)):
            titles[field[1]] = title
    return titles


# commands


def commands() -> list[str]:
    """Return the names of the commands, those below `tenantqueue` without that word."""
    from django_tenantqueue.management.commands.tenantqueue import subcommands

    return ["runworker", "workerhealth", *subcommands()]


def own_actions(name: str) -> list[Any]:
    """Return the options and arguments of a command, without those that Django gives each."""
    from django.core.management import load_command_class
    from django.core.management.base import BaseCommand

    from django_tenantqueue.management.commands.tenantqueue import subcommands

    if name in ("runworker", "workerhealth"):
        common = BaseCommand().create_parser("manage.py", name)._option_string_actions
        command = load_command_class("django_tenantqueue", name)
        actions = command.create_parser("manage.py", name)._actions
        return [action for action in actions if not common.keys() & set(action.option_strings)]
    parser = ArgumentParser(add_help=False)
    subcommands()[name]().add_arguments(parser)
    return parser._actions


COMMON = {
    "--format FORMAT": "text (the default) or json",
    "--database DATABASE": "alias of the jobs' database (default: TENANTQUEUE['DATABASE'])",
}
"""Options with the same meaning in most subcommands of tenantqueue. The page lists them once."""


def is_common(name: str, action: Any) -> bool:
    """Whether an option of a subcommand is one of COMMON."""
    takes = action.metavar or action.dest.upper()
    text = COMMON.get(f"{next(iter(action.option_strings), '')} {takes}")
    return text is not None and text == (action.help or "") % vars(action)


def command_options(name: str) -> dict[str, tuple[str, str]]:
    """Return option -> (argument, help) of a command, without those that most commands have."""
    found = {}
    for action in own_actions(name):
        if action.help == SUPPRESS or is_common(name, action):
            continue
        takes = "" if action.nargs == 0 else action.metavar or "NUMBER"
        if takes and not action.metavar and action.type is None:
            takes = action.dest.upper()
        text = (action.help or "") % vars(action)
        if isinstance(takes, tuple):
            takes = " ".join(takes)
        if action.option_strings:
            found[action.option_strings[0]] = (str(takes), text)
        else:  # a positional argument
            found[str(takes)] = ("", text)
    return found


def subcommands_table() -> str:
    """Return the list of the subcommands, and what each does."""
    from django_tenantqueue.management.commands.tenantqueue import subcommands

    lines = ["| subcommand | purpose |", "| --- | --- |"]
    for name, kind in subcommands().items():
        link = f"[`{name}`](#tenantqueue-{name.replace(' ', '-')})"
        lines.append(f"| {link} | {kind.help} |")
    return "\n".join(lines)


def options_table(part: str) -> str:
    """Return the table of a command's options. `part`: its name with `-options` at the end."""
    named = {f"{name.replace(' ', '-')}-options": name for name in commands()}
    rows = [
        f"| `{f'{option} {takes}'.strip()}` | {text} |"
        for option, (takes, text) in command_options(named[part]).items()
    ]
    return "\n".join(["| option | meaning |", "| --- | --- |", *rows])


# SQL statements


def sql_head(path: Path) -> list[str]:
    """Return the paragraphs of the comment at the top of a statement."""
    paragraphs: list[str] = []
    fresh = True
    for line in path.read_text().splitlines():
        if not line.startswith("--"):
            break
        said = line[2:].strip()
        if not said:
            fresh = True
        elif fresh or re.match(r"(Locks|Index(es)?|Order|Fenced)\b.*[:.]", said):
            paragraphs.append(said)
            fresh = False
        else:
            paragraphs[-1] += f" {said}"
    return paragraphs


# states

MEANINGS = {
    "scheduled": "its `run_at` is in the future: its first start, or a retry after the backoff",
    "held": "a gate holds it: its monitor, session, user limit, unique key or task",
    "ready": "it starts when its queue has a free slot and a worker claims it",
    "queued": "a worker has claimed it. It is about to start, or has run for less than 0.2 s",
    "running": "it has run for 0.2 s or longer",
    "success": "the task returned",
    "error": "the last attempt failed, or the error was permanent",
    "cancelled": "it was cancelled, or expired before its start",
}

CAUSES = {
    ("scheduled", "ready"): "its time comes, or an operator runs it now",
    ("scheduled", "held"): "its time comes, but a gate holds it. Or earlier: its session lets "
    "other jobs overtake it, or its monitor takes it back because too many details are in flight",
    ("scheduled", "cancelled"): "it is cancelled",
    ("held", "ready"): "it passes its last gate",
    ("held", "scheduled"): "an operator moves its `run_at` into the future, and no monitor or "
    "session holds it. Or its monitor releases it before its `run_at`",
    ("held", "cancelled"): "it is cancelled",
    ("ready", "queued"): "a worker claims it",
    ("ready", "scheduled"): "an operator moves its `run_at` into the future",
    ("ready", "held"): "a gate takes it back before a worker claims it",
    ("ready", "cancelled"): "it is cancelled",
    ("queued", "held"): "its task is paused or at its limit",
    ("queued", "running"): "it has run for 0.2 s",
    ("queued", "ready"): "it is returned before its start, retried without backoff, or rescued "
    "from a dead worker",
    ("queued", "scheduled"): "it fails within 0.2 s and is retried; or it is returned because the "
    "worker does not know its task",
    ("queued", "success"): "the task returns within 0.2 s",
    ("queued", "error"): "it fails within 0.2 s and is not retried; or its worker dies in the last "
    "attempt",
    ("queued", "cancelled"): "it is cancelled or expires before its start; or its worker dies "
    "after a request to cancel it",
    ("running", "ready"): "it is returned at a shutdown, retried without backoff, or rescued from "
    "a dead worker",
    ("running", "scheduled"): "it fails and is retried",
    ("running", "success"): "the task returns",
    ("running", "error"): "it fails and is not retried; or its worker dies in the last attempt",
    ("running", "cancelled"): "it stops, or its worker dies, after a request to cancel it",
    ("error", "ready"): "an operator retries it",
    ("error", "held"): "an operator retries it, and a gate holds it",
    ("cancelled", "ready"): "an operator retries it",
    ("cancelled", "held"): "an operator retries it, and a gate holds it",
}


def edges() -> list[tuple[str, str]]:
    """Return the transitions in the order of the states; ValueError when CAUSES lacks one."""
    from django_tenantqueue.states import TRANSITIONS, State

    order = [state.value for state in State]
    found = [(old.value, new.value) for old, after in TRANSITIONS.items() for new in after]
    if set(found) != set(CAUSES):
        raise ValueError(f"docs/_ext/from_code.py: CAUSES differs in {set(found) ^ set(CAUSES)}")
    return sorted(found, key=lambda edge: (order.index(edge[0]), order.index(edge[1])))


def states_table() -> str:
    """Return a table of the states."""
    from django_tenantqueue.states import ACTIVE, FINAL, State

    rows = []
    for state in State:
        kind = "final" if state in FINAL else "holds a slot" if state in ACTIVE else "waits"
        rows.append(f"| `{state.value}` | {kind} | {MEANINGS[state.value]} |")
    return "\n".join(["| state | kind | meaning |", "| --- | --- | --- |", *rows])


def features_table() -> str:
    """Return the table of the methods of a feature."""
    from django_tenantqueue.features import Feature

    lines = ["| method | purpose |", "| --- | --- |"]
    for name, method in vars(Feature).items():
        if inspect.isfunction(method):
            text = (inspect.getdoc(method) or "").partition("\n\n")[0]
            names = ", ".join(list(inspect.signature(method).parameters)[1:])
            lines.append(f"| `{name}({names})` | {' '.join(text.split())} |")
    return "\n".join(lines)


def feature_classes() -> str:
    """Return a table for each class whose objects a feature returns."""
    return "\n\n".join(map(_feature_class, ("Duty", "Condition")))


def _feature_class(name: str) -> str:
    from dataclasses import MISSING, fields

    from django_tenantqueue import features

    docs = field_docs(PACKAGE / "features.py", name)
    lines = [f"| `{name}(…)` | default | meaning |", "| --- | --- | --- |"]
    for field in fields(getattr(features, name)):
        if field.init:
            default = "–" if field.default is MISSING else f"`{field.default!r}`"
            lines.append(f"| `{field.name}` | {default} | {docs[field.name]} |")
    return "\n".join(lines)


def conditions_tables() -> str:
    """Return the tables of all conditions: those that people end, and those that time ends."""
    from django_tenantqueue.contrib.alerts.watches import watched
    from django_tenantqueue.features import Severity
    from django_tenantqueue.status.conditions import conditions

    rules = watched()
    head = "| code | of a job | of the fleet | remedy | alert rules | tenants |"
    parts: dict[str, list[str]] = {Severity.PEOPLE: [], Severity.TIME: []}
    for each in conditions():
        watch = rules.get(str(each.code))
        cells = [f"`{each.code}`", _first(each.job), _first(each.fleet)]
        cells += [_with_names(each.remedy or ""), each.title if watch else "–"]
        told = each.of_tenants if watch is None else watch[1].of_tenants
        cells.append("yes" if told else "–")
        parts[each.severity].append(f"| {' | '.join(str(cell or '–') for cell in cells)} |")
    titles = {Severity.PEOPLE: "An operator must act", Severity.TIME: "Time or other jobs end it"}
    return "\n\n".join(
        "\n".join([f"## {title}\n", head, "| --- | --- | --- | --- | --- | --- |", *parts[kind]])
        for kind, title in titles.items()
    )


def _first(text: Any) -> str:
    """Return a lazy text with its placeholders; of one with numbers, that for many."""
    if not text:
        return ""
    _, parts = text.__reduce__()  # what Django keeps of it
    given = parts[-1]
    is_counted = isinstance(given, dict) and "plural" in given
    return _with_names(given["plural"] if is_counted else text)


def _with_names(text: Any) -> str:
    """Return a text with the names of its placeholders in italics."""
    return re.sub(r"%\((\w+)\)[sd]", r"*\1*", str(text)).replace("%%", "%")


def transitions_table() -> str:
    """Return a table of the transitions."""
    rows = [f"| `{old}` | `{new}` | {CAUSES[old, new]} |" for old, new in edges()]
    return "\n".join(["| from | to | when |", "| --- | --- | --- |", *rows])


def state_diagram() -> str:
    """Return docs/images/states.svg: the states and their transitions."""
    unused = {edge for edge, cause in CAUSES.items() if cause == "not used yet"}
    return draw_states(edges(), dashed=unused) + "\n"


def house_diagram() -> str:
    """Return docs/images/house.svg: the core, the hooks, and the apps that use them."""
    from django.apps import apps

    configs = [
        apps.get_app_config(f"tenantqueue_{path.rpartition('.')[2]}")
        for path in installed_apps()[1:]
    ]
    return (
        draw_house({c.name.rpartition(".")[2]: [type(f) for f in _features(c)] for c in configs})
        + "\n"
    )


def metrics_table() -> str:
    """Return a table of the metrics."""
    from django_tenantqueue.contrib.prometheus.families import FAMILIES

    lines = ["| metric | kind | labels | meaning |", "| --- | --- | --- | --- |"]
    for family in FAMILIES:
        name = family.samples[0] if family.kind == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in family.labels)
        lines.append(f"| `{name}` | {family.kind} | {labels} | {family.text} |")
    return "\n".join(lines)


def server_commands() -> str:
    """Return a table of the commands of the embedded server."""
    from example_project.postgres.__main__ import COMMANDS

    rows = [f"| `{name}` | {text} |" for name, text in COMMANDS.items()]
    return "\n".join(["| command | effect |", "| --- | --- |", *rows])


# apps

EXTRAS = {
    "api": "`api`",
    "celery": "`celery`, to run jobs in Celery",
    "http": "`http`, for workers",
    "prometheus": "`prometheus`",
    "schedules": "`cron`, for cron expressions",
}
"""What the apps of contrib/ need from pyproject.toml."""


def apps_tables() -> str:
    """Return two tables of the apps in contrib/. LookupError for an extra that does not exist."""
    from django.apps import apps

    names = [path.rpartition(".")[2] for path in installed_apps()[1:]]
    known = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    for name, text in EXTRAS.items():
        if name not in names or text.split("`")[1] not in known["optional-dependencies"]:
            raise LookupError(f"docs/_ext/from_code.py: EXTRAS has {name!r}: {text!r}")
    configs = [apps.get_app_config(f"tenantqueue_{name}") for name in names]
    return f"{_first_apps_table(configs)}\n\n{_second_apps_table(configs)}"


def _first_apps_table(configs: list[Any]) -> str:
    lines = ["| app | adds | needs the app | extra |", "| --- | --- | --- | --- |"]
    for config in configs:
        text = str(inspect.getdoc(type(config))).removesuffix(".")
        needs = [f"`{path.partition('.')[2]}`" for path in config.needs]
        extra = EXTRAS.get(config.name.rpartition(".")[2])
        lines.append(f"| `{config.name}` | {text} | {_cell(needs)} | {extra or '–'} |")
    return "\n".join(lines)


def _second_apps_table(configs: list[Any]) -> str:
    lines = ["| label | settings | commands | tables | lists in the admin |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for config in configs:
        names = [name for one in _features(config) for name in one.commands()]
        tables = [f"`{model._meta.db_table}`" for model in config.get_models()]
        cells = [_own_settings(config), [*_own_options(config), *(f"`{n}`" for n in names)]]
        cells += [tables, _own_lists(config)]
        lines.append(f"| `{config.label}` | {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines)


def _cell(entries: list[str]) -> str:
    return ", ".join(entries) or "–"


def _features(config: Any) -> list[Any]:
    return [import_string(path)() for path in config.tenantqueue_features]


def _own_settings(config: Any) -> list[str]:
    """Return links to the tables of an app's settings."""
    groups = [one.settings.group for one in _features(config) if one.settings]
    return [f"[`{group}`](settings.md#{group.lower()})" for group in groups]


def _own_options(config: Any) -> list[str]:
    """Return the options that an app adds to runworker."""
    parser = ArgumentParser(add_help=False)
    for feature in _features(config):
        feature.worker_arguments(parser)
    return [f"`runworker {action.option_strings[-1]}`" for action in parser._actions]


def _own_lists(config: Any) -> list[str]:
    """Return the names of the lists that an app adds to the admin, which is not loaded here."""
    from django.utils.translation import override

    path = Path(config.path) / "admin.py"
    names = re.findall(
        r"^@admin\.register\((\w+)\)", path.read_text() if path.exists() else "", re.M
    )
    with override("en"):
        lists = [str(config.get_model(name)._meta.verbose_name_plural) for name in names]
    return [f"*{name[0].upper()}{name[1:]}*" for name in lists]


PARTS: dict[str, Callable[[], str]] = {
    "installed-apps": apps_tables,
    "settings": settings,
    "subcommands": subcommands_table,
    "states": states_table,
    "conditions": conditions_tables,
    "features": features_table,
    "feature-classes": feature_classes,
    "transitions": transitions_table,
    "metrics": metrics_table,
    "http-operations": operations_tables,
    "server-commands": server_commands,
    "fleet-day": day_table,
    "surface": lambda: surface_page(expand),
}


DIAGRAMS: dict[str, Callable[[], str]] = {
    "dead-worker.svg": draw_death,
    "fleet-cost.svg": draw_fleet_cost,
    "fleet-day.svg": draw_fleet_day,
    "gates.svg": draw_gates,
    "house.svg": house_diagram,
    "job-life.svg": draw_job_life,
    "monitor.svg": draw_monitor,
    "next-job.svg": draw_next_job,
    "overview.svg": draw_overview,
    "partitions.svg": draw_partitions,
    "session.svg": draw_session,
    "states.svg": state_diagram,
    "turns.svg": draw_turns,
}
"""The files of docs/images that are drawn from the code, or from a recorded simulation."""


def _warn(app: Any) -> None:
    from sphinx.util import logging

    for path in stale():
        logging.getLogger(__name__).warning("%s is out of date: run `make reference`", path)


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("builder-inited", _warn)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def main(arguments: list[str]) -> int:
    """Write the files that are out of date, or name them with --check."""
    import django
    from django.conf import settings as django_settings

    sys.path.insert(0, str(DOCS.parent))
    django_settings.configure(INSTALLED_APPS=installed_apps(), USE_TZ=True)
    django.setup()
    found = stale()
    for path, text in found.items():
        print(path.relative_to(DOCS.parent))
        if arguments != ["--check"]:
            path.write_text(text)
    return int(bool(found) and arguments == ["--check"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
