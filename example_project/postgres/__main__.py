"""Start, stop and look at the embedded PostgreSQL: ``python -m example_project.postgres``."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import DEFAULT_DATA_DIR, Cluster, PostgresError, database, find_binaries
from .temporary import guard

COMMANDS = {
    "start": "start the server (created at first use) and print its URL",
    "stop": "stop the server",
    "remove": "stop the server and remove its data",
    "status": "show whether the server runs; exit code 3 if not",
    "url": "print DATABASE_URL, or the URL of the running server",
    "psql": "open psql on the server; further arguments go to psql",
    "run": "run a command with DATABASE_URL set to a temporary server",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m example_project.postgres", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in {**COMMANDS, "guard": argparse.SUPPRESS}.items():
        command = commands.add_parser(name, help=text)
        command.add_argument("--data-dir", type=Path, default=DEFAULT_DATA_DIR)
        if name == "start":
            command.add_argument("--port", type=int)
        if name == "run":
            command.add_argument("arguments", nargs=argparse.REMAINDER)
    options, rest = parser.parse_known_args()
    if options.command == "psql":
        options.arguments = rest
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return _perform(options)
    except PostgresError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _perform(options: argparse.Namespace) -> int:
    external = os.environ.get("DATABASE_URL")
    match options.command:
        case "run":
            return _run(options.arguments)
        case "guard":
            guard(options.data_dir)
            return 0
        case "url" | "psql" if external:
            url = external
        case "start" | "stop" | "remove" | "status" if external:
            print("DATABASE_URL is set: the embedded server is not used.")
            return 0
        case "start":
            print(Cluster(options.data_dir).start(port=options.port))
            return 0
        case "stop":
            print("stopped" if Cluster(options.data_dir).stop() else "was not running")
            return 0
        case "remove":
            Cluster(options.data_dir).destroy()
            return 0
        case "status":
            return _status(Cluster(options.data_dir))
        case _:
            url = _running_url(Cluster(options.data_dir))
    if options.command == "psql":
        program = shutil.which("psql") if external else find_binaries().program("psql")
        if program is None:
            raise PostgresError("There is no psql on the PATH.")
        os.execv(program, [program, url, *options.arguments])
    print(url)
    return 0


def _status(cluster: Cluster) -> int:
    if cluster.pid is None:
        print(f"PostgreSQL {cluster.binaries.version} in {cluster.home}: not running")
        return 3
    print(f"PostgreSQL {cluster.binaries.version} in {cluster.home}: running, pid {cluster.pid}")
    return 0


def _running_url(cluster: Cluster) -> str:
    if cluster.pid is None:
        raise PostgresError(
            "The embedded server is not running. Start it: python -m example_project.postgres start"
        )
    return cluster.url


def _run(command: list[str]) -> int:
    arguments = command[1:] if command[:1] == ["--"] else command
    if not arguments:
        raise PostgresError("run needs a command.")
    with database() as url:
        return subprocess.run(
            arguments, env={**os.environ, "DATABASE_URL": url}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
