"""manage.py tenantqueue: the subcommands of the core and of the apps."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandParser, DjangoHelpFormatter

from ...features import Feature, hooks
from ..subcommands.apply_priority_scope import ApplyPriorityScope
from ..subcommands.bulk import Bulk
from ..subcommands.control import Cancel, Pause, Resume, Retry, Tune
from ..subcommands.erase import Erase
from ..subcommands.explain import Explain
from ..subcommands.export import Export
from ..subcommands.mute import MuteProblem, UnmuteProblem
from ..subcommands.status import Status

Kinds = Mapping[str, type[BaseCommand]]

CORE: Kinds = {
    "status": Status,
    "explain": Explain,
    "pause": Pause,
    "resume": Resume,
    "cancel": Cancel,
    "retry": Retry,
    "tune": Tune,
    "mute": MuteProblem,
    "unmute": UnmuteProblem,
    "bulk": Bulk,
    "export": Export,
    "erase": Erase,
    "apply-priority-scope": ApplyPriorityScope,
}
"""The subcommands of the core, in the order of the list."""


def subcommands() -> dict[str, type[BaseCommand]]:
    """Return the subcommands by their names, "verb" or "noun verb": the core's, then the apps'.

    Raises ImproperlyConfigured when two have one name.
    """
    own: dict[str, type[BaseCommand]] = {}
    for commands in hooks(Feature.commands):
        for name, kind in commands().items():
            known = CORE.get(name) or own.get(name)
            if known is not None or name.partition(" ")[0] in CORE:
                raise ImproperlyConfigured(
                    f"{kind.__module__}: there is another subcommand {name!r} of "
                    "`manage.py tenantqueue`. Choose another name, such as that of your app and a "
                    "verb"
                )
            own[name] = kind
    return {**CORE, **dict(sorted(own.items()))}


_JOBS = (
    "no subcommand lists jobs. The admin does, and so does "
    "`Job.objects.filter(task=…, state='error')` in `manage.py shell`"
)
ELSEWHERE = {
    "dump": "use `export`",
    "inspect": "use `status`, and `explain` for one job",
    "jobs": _JOBS,
    "list": _JOBS,
    "ls": _JOBS,
    "purge": "use `bulk cancel` with --queue",
    "queues": "use `status`",
    "stats": "use `status`",
    "workers": "use `status`",
}
"""Subcommands of other systems, and what is used here."""
FLAGS = {
    "--cancelled": "use --state cancelled",
    "--failed": "use --state error",
    "--json": "use --format json",
    "--queued": "use --state ready",
    "--tenant": (
        "this subcommand is about all tenants. `bulk ACTION --dry-run --tenant` counts jobs of one"
    ),
}
"""Options of other systems, and what is used here."""
WITH_NAMES = ("--tenant", "--queue")
"""Options that a name without an option may belong to."""


class _Parser(CommandParser):
    """Suggests the nearest subcommand for an unknown name."""

    known: Kinds = {}
    """The subcommands below it, by the rest of their names."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            near = get_close_matches(value, [*action.choices, *self.known], n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            if value in ELSEWHERE:
                hint = f"{ELSEWHERE[value]}. "
            raise argparse.ArgumentError(
                None,
                f"there is no subcommand {value!r}: {hint}`{self.prog.strip()} --help` lists them",
            )
        super()._check_value(action, value)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reject what is not known here, with the usage of this subcommand."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            meant = [FLAGS[name] for one in rest if (name := one.partition("=")[0]) in FLAGS]
            names = [name for name in WITH_NAMES if name in self._option_string_actions]
            if names and not rest[0].startswith("-"):
                meant.append("use " + " or ".join(f"{name} {rest[0]}" for name in names))
            hint = "".join(f". {one[0].upper()}{one[1:]}" for one in meant)
            self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return found, rest


class _ListFormatter(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the list."""


class Command(BaseCommand):
    """Runs one of the subcommands."""

    help = "Inspect and control queues, jobs and workers."
    missing_args_message = "name a subcommand: `manage.py tenantqueue --help` lists them"
    requires_system_checks = ["tenantqueue"]  # its subcommands say it for themselves

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return a parser with one below it for each subcommand, all with Django's options."""
        base = super().create_parser(prog_name, subcommand, add_help=False)
        again = super().create_parser(prog_name, subcommand, add_help=False)
        for action in again._actions:
            action.default = argparse.SUPPRESS  # those of the base hold
        root = _Parser(
            prog=base.prog,
            parents=[base],
            formatter_class=_ListFormatter,
            missing_args_message=self.missing_args_message,
            called_from_command_line=getattr(self, "_called_from_command_line", None),
            **kwargs,
        )
        found = subcommands()
        lists = {"": self._add_list(root, found)}
        for name, kind in found.items():
            noun, _, verb = name.rpartition(" ")
            if noun not in lists:
                below = lists[""].add_parser(noun, formatter_class=_ListFormatter)
                of_noun = {n.split()[-1]: k for n, k in found.items() if n.startswith(f"{noun} ")}
                lists[noun] = self._add_list(below, of_noun)
            parser = lists[noun].add_parser(
                verb, parents=[again], description=kind.help, formatter_class=DjangoHelpFormatter
            )
            kind().add_arguments(parser)
            parser.set_defaults(subcommand=kind)
        return root

    def _add_list(self, parser: _Parser, known: Kinds) -> Any:
        """Let a parser choose among subcommands, and list them at the top of its help."""
        parser.known = known
        width = max(map(len, known))
        lines = [f"  {name:<{width}}  {kind.help}" for name, kind in known.items()]
        parser.description = "\n".join([self.help, "", "subcommands:", *lines])
        return parser.add_subparsers(
            required=True,
            metavar="SUBCOMMAND",
            help="`SUBCOMMAND --help` lists its options",
        )

    def execute(self, *args: Any, **options: Any) -> Any:
        command = options.pop("subcommand")()
        try:
            return command.execute(*args, **options)
        finally:
            self.stderr = command.stderr  # Django prints errors there, in the colours asked for
