"""manage.py tenantqueue shards"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, connections

from django_tenantqueue.management.subcommand import Subcommand
from django_tenantqueue.models import TenantQueue
from django_tenantqueue.text import number_of

from ... import moving, services
from ...routes import aliases, are_sharded, shard_of
from ...setup import set_up


class SetUpShards(Subcommand):
    help = "Set up the databases of SHARDS: their numbers, ids, and pins of existing tenants."

    def handle(self, *args: Any, **options: Any) -> None:
        """Set them up, and say what was done."""
        set_up(self.stdout.write)


class ListShards(Subcommand):
    help = "List the databases of SHARDS, and the pinned tenants."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        self.add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each database, then one for each pin."""
        shards = [
            {"number": number, "database": alias, **self._read(alias)}
            for number, alias in enumerate(aliases())
        ]
        pins = services.list_pins() if are_sharded() and shards[0]["is_up"] else {}
        moves = self._read_moves() if all(shard["is_up"] for shard in shards) else {}
        if options["format"] == "json":
            self.print_json({"shards": shards, "pins": pins, "moves": moves})
            return
        for shard in shards:
            state = number_of("tenant", shard["tenants"]) if shard["is_up"] else "cannot be used"
            self.stdout.write(f"{shard['number']}  {shard['database']}: {state}")
        for tenant, alias in pins.items():
            self.stdout.write(f"pinned: {tenant} → {alias}")
        for tenant, alias in moves.items():
            self.stdout.write(f"move not completed: {tenant} → {alias}")

    def _read_moves(self) -> dict[str, str]:
        if not are_sharded():
            return {}
        return {row.tenant: aliases()[row.target] for row in moving.list_moves()}

    def _read(self, alias: str) -> dict[str, Any]:
        try:
            connections[alias].ensure_connection()
            rows = TenantQueue.objects.using(alias).exclude(tenant="").order_by()
            return {"is_up": True, "tenants": rows.values("tenant").distinct().count()}
        except DatabaseError:
            return {"is_up": False, "tenants": 0}


class FindShard(Subcommand):
    help = "Print the database of a tenant's jobs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the argument."""
        parser.add_argument("pinned_tenant", metavar="TENANT", help="exact tenant")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        self.stdout.write(shard_of(options["pinned_tenant"]))


class PinTenant(Subcommand):
    help = "Keep the jobs of a new tenant in a database of your choice."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "pinned_tenant", metavar="TENANT", help="exact tenant, without jobs so far"
        )
        parser.add_argument("pinned_to", metavar="ALIAS", help="alias of a database of SHARDS")

    def handle(self, *args: Any, **options: Any) -> None:
        """Pin it, and say so."""
        services.pin_tenant(options["pinned_tenant"], options["pinned_to"])
        self.stdout.write(
            f"tenant {options['pinned_tenant']!r} was pinned to {options['pinned_to']}"
        )


class MoveTenant(Subcommand):
    help = "Move a tenant and all its rows to another database, or complete a move."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("moved_tenant", metavar="TENANT", help="exact tenant")
        parser.add_argument(
            "moved_to", metavar="ALIAS", nargs="?", help="alias of a database of SHARDS"
        )
        parser.add_argument(
            "--cancel", action="store_true", help="cancel a move that has not been switched yet"
        )
        parser.add_argument(
            "--wait",
            type=float,
            metavar="SECONDS",
            help="longest wait for running jobs (default: no limit)",
        )
        parser.add_argument(
            "--max-stop",
            type=float,
            metavar="SECONDS",
            default=moving.STOP_SECONDS,
            help="longest wait for open transactions while enqueues are rejected (default: "
            f"{moving.STOP_SECONDS:g})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Move it, and say what is done."""
        tenant, alias = options["moved_tenant"], options["moved_to"]
        if options["cancel"]:
            if not moving.cancel_move(tenant):
                raise CommandError(f"tenant {tenant!r} is not being moved")
            self.stdout.write(f"the move of tenant {tenant!r} was cancelled")
            return
        if alias is None:
            raise CommandError("give the alias of the database to move to, or --cancel")
        moving.move_tenant(
            tenant,
            alias,
            wait=options["wait"],
            max_stop=options["max_stop"],
            tell=self._say,
        )

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


class UnpinTenant(Subcommand):
    help = "Remove the pin of a tenant that has no queues in another database."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the argument."""
        parser.add_argument("pinned_tenant", metavar="TENANT", help="exact tenant")

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove it, and say so."""
        if not services.unpin_tenant(options["pinned_tenant"]):
            raise CommandError(f"tenant {options['pinned_tenant']!r} is not pinned")
        self.stdout.write(f"tenant {options['pinned_tenant']!r} is no longer pinned")
