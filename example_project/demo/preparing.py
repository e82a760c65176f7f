"""Make the database ready: tables, flights, airlines' queues, an admin user."""

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

HOST = "127.0.0.1"
FIRST_PORT, LAST_PORT = 8000, 8050
ADMIN_NAME = "admin"


class PortInUse(Exception):
    """Another program listens on the requested port."""


@contextmanager
def timed(label: str) -> Iterator[Callable[[str], None]]:
    """Print a line about a step: its label at once, then its result and duration."""
    print(f"  {label:<13}", end="", flush=True)
    began = monotonic()
    result: list[str] = []
    try:
        yield result.append
    except BaseException:
        print()
        raise
    print(f"{''.join(result):<58}{monotonic() - began:5.1f} s")


def prepare_database(most_flights: int | None) -> None:
    """Migrate the tables and load missing data, and print what was done."""
    from django.core.management import call_command
    from django.db import connection

    from example_project.flights.loading import load

    with timed("Database") as tell:
        connection.ensure_connection()
        version = connection.pg_version
        call_command("migrate", interactive=False, verbosity=0)
        at = connection.get_connection_params()
        tell(
            f"PostgreSQL {version // 10000}.{version % 10000} on "
            f"{at.get('host', 'a socket')}:{at.get('port', 5432)}, tables up to date"
        )
    with timed("Flight data") as tell:
        loaded = load(most_flights)
        tell(
            f"{loaded.flights:,} flights of {loaded.airlines} airlines"
            + (", loaded before" if loaded.already else "")
        )


def make_admin() -> str:
    """Create the admin user with a new password, or DEMO_ADMIN_PASSWORD; return the password."""
    from django.contrib.auth import get_user_model

    password = os.environ.get("DEMO_ADMIN_PASSWORD") or secrets.token_urlsafe(9)
    user, _ = get_user_model().objects.get_or_create(
        username=ADMIN_NAME, defaults={"is_staff": True, "is_superuser": True}
    )
    user.is_staff = user.is_superuser = user.is_active = True
    user.set_password(password)
    user.save()
    return password


def make_troubles() -> list[str]:
    """Create problems to fix in the admin; return a line about each."""
    from example_project.flights.troubles import make_troubles

    return make_troubles()


def choose_port(wanted: int | None) -> int:
    """Return the wanted port, or a free one; raises PortInUse."""
    if wanted:
        if not _is_free(wanted):
            raise PortInUse(
                f"Port {wanted} is in use. Give another --port, or none to use a free one."
            )
        return wanted
    for port in range(FIRST_PORT, LAST_PORT) if wanted is None else ():
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
