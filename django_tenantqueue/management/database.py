"""The jobs' database of a command, the actor of its changes, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.management.base import CommandError
from django.db import DatabaseError, DataError, IntegrityError, connections

from ..conf import alias_of
from ..exceptions import TenantQueueError
from ..models import Change
from ..operations.actor import acting_as, shell_user


def jobs_database(alias: str | None) -> str:
    """Return the alias of the jobs' database: the one given, or else that of the settings.

    Raises CommandError when DATABASES has no such alias.
    """
    using = alias_of(alias)
    if using not in connections.settings:
        raise CommandError(
            f"--database={using!r} is not in DATABASES, which has "
            f"{', '.join(sorted(connections.settings))}",
            returncode=2,
        )
    return using


@contextmanager
def telling_database_errors(alias: str | None) -> Iterator[None]:
    """Raise CommandError for an error of the jobs' database, with what to check."""
    try:
        yield
    except (IntegrityError, DataError) as error:  # the server works, and refuses a value
        raise CommandError(f"PostgreSQL rejected a value: {str(error).strip()}") from error
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) == "42501":
            raise CommandError(
                f"the role of the jobs' database {alias_of(alias)!r} lacks a right: "
                f"{str(error).strip()}\nGRANT it to the role, or use the role of the workers"
            ) from error
        raise CommandError(
            f"the jobs' database {alias_of(alias)!r} cannot be used: {str(error).strip()}\n"
            "Is PostgreSQL running, and has `manage.py migrate` been run?"
        ) from error


@contextmanager
def acting_as_shell_user() -> Iterator[None]:
    """Name the user of the shell in the list of changes; raise CommandError for what is refused."""
    try:
        with acting_as(shell_user(), Change.Source.COMMAND):
            yield
    except ValidationError as error:
        raise CommandError(_told(error)) from error
    except TenantQueueError as error:
        raise CommandError(str(error)) from error


def _told(error: ValidationError) -> str:
    if not hasattr(error, "error_dict"):
        return "; ".join(error.messages)
    return "; ".join(
        text if column == NON_FIELD_ERRORS else f"{column}: {text}"
        for column, texts in error.message_dict.items()
        for text in texts
    )
