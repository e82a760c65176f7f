"""The account that the server runs under, and where that account can keep files.

PostgreSQL refuses to run as root. Started by root, it runs as an unprivileged account instead,
which may not be able to enter the directory where the project lies.
"""

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .binaries import WHEEL, Binaries
from .errors import PostgresError

# Where root keeps files for the account when it cannot reach the project.
SYSTEM_PARENTS = (Path("/var/lib"), Path(tempfile.gettempdir()))
SYSTEM_NAME = "django-tenantqueue"


@dataclass(frozen=True, slots=True)
class Account:
    """An operating system account; ``switch`` says that it is not the one in use."""

    name: str
    uid: int
    gid: int
    switch: bool

    def run(
        self, argv: Sequence[str], *, stdin: str = "", timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a program under this account and return what it printed, whatever its exit code."""
        # A working directory that the account cannot enter makes PostgreSQL's programs complain.
        return subprocess.run(
            argv,
            input=stdin,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
        )

    def can_enter(self, directory: Path) -> bool:
        return not self.switch or self.run(["test", "-x", str(directory)]).returncode == 0

    def own(self, directory: Path) -> None:
        """Make a directory that only this account may enter (and root)."""
        directory.mkdir(mode=0o700, exist_ok=True)
        if self.switch:
            os.chown(directory, self.uid, self.gid)

    def own_file(self, path: Path, text: str) -> None:
        """Write a file that only this account may read (and root)."""
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(text)
        if self.switch:
            os.chown(path, self.uid, self.gid)


def server_account() -> Account:
    """Return the account in use, or for root the one that TENANTQUEUE_PGUSER names."""
    uid = os.geteuid()
    if uid != 0:
        return Account(_name(uid), uid, os.getegid(), switch=False)
    name = os.environ.get("TENANTQUEUE_PGUSER", "nobody")
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise PostgresError(
            f"PostgreSQL does not run as root, and there is no account {name!r} to run it as. "
            f"Set TENANTQUEUE_PGUSER to an unprivileged account, or run as an ordinary user."
        ) from None
    if entry.pw_uid == 0:
        raise PostgresError(
            f"TENANTQUEUE_PGUSER={name!r} is root; PostgreSQL does not run as root."
        )
    return Account(name, entry.pw_uid, entry.pw_gid, switch=True)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def reachable_directory(account: Account, wanted: Path) -> Path:
    """Return wanted, made if need be, or a system directory in its place.

    The system directory's name is derived from the wanted one, so that a later call finds it.
    """
    existing = next(parent for parent in (wanted, *wanted.parents) if parent.exists())
    if account.can_enter(existing):
        _make_open(wanted)
        return wanted
    key = hashlib.sha256(os.fsencode(wanted)).hexdigest()[:12]
    directory = _system_directory(account) / key
    _make_open(directory)
    return directory


def reachable_binaries(account: Account, binaries: Binaries) -> Binaries:
    """Return the binaries, copied to a system directory if the account cannot run them."""
    if not account.switch or _runs(account, binaries):
        return binaries
    if binaries.tree is None:
        raise PostgresError(
            f"Account {account.name!r}, which the server runs as, cannot run the programs in "
            f"{binaries.directory}; set TENANTQUEUE_PGUSER to one that can."
        )
    copy = _system_directory(account) / f"postgresql-{binaries.version}"
    moved = replace(binaries, directory=copy / binaries.directory.relative_to(binaries.tree))
    if not copy.exists():
        # Renamed into place when complete: a copy that was cut short is never used.
        partial = Path(tempfile.mkdtemp(dir=copy.parent))
        partial.chmod(0o755)
        installed = binaries.directory.parent
        shutil.copytree(installed, partial / installed.relative_to(binaries.tree), symlinks=True)
        (partial / WHEEL).chmod(0o755)
        libraries = f"{WHEEL}.libs"
        if (binaries.tree / libraries).is_dir():
            shutil.copytree(binaries.tree / libraries, partial / libraries, symlinks=True)
        try:
            partial.rename(copy)
        except OSError:  # another process was first
            shutil.rmtree(partial)
    if not _runs(account, moved):
        raise PostgresError(f"Account {account.name!r} cannot run {moved.program('postgres')}.")
    return moved


def _runs(account: Account, binaries: Binaries) -> bool:
    try:
        return account.run([binaries.program("postgres"), "--version"]).returncode == 0
    except PermissionError:
        return False


def _system_directory(account: Account) -> Path:
    for parent in SYSTEM_PARENTS:
        directory = parent / SYSTEM_NAME
        try:
            _make_open(directory)
        except OSError:
            continue
        found = directory.lstat()
        # Any account may create a directory of this name in the temporary directory.
        if stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and account.can_enter(directory):
            return directory
    raise PostgresError(
        f"Account {account.name!r}, which the server runs as, cannot reach the project's "
        f"directory or any of {', '.join(map(str, SYSTEM_PARENTS))}. "
        f"Set TENANTQUEUE_PGUSER to an account that can, or DATABASE_URL to a running server."
    )


def _make_open(directory: Path) -> None:
    """Make a directory with its parents, enterable by all whatever the umask is."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
