"""Move tenants while their jobs are enqueued and run: `python -m tests.contrib.shards.moves`.

Starts a PostgreSQL of its own with two databases, and the run of run.py with them. Takes
`--moves` and `--seed`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import psycopg

from tests.chaos.server import ROOT, private_server

ALIASES = ("us0", "eu1")
SETTINGS = "tests.contrib.shards.worker_settings"


def main() -> int:
    """Run, and return the exit code."""
    with private_server() as server:
        url = urlsplit(server.url)
        urls = {alias: url._replace(path=f"/{alias}").geturl() for alias in ALIASES}
        with psycopg.connect(server.url, autocommit=True) as connection:
            for alias in ALIASES:
                connection.execute(f"CREATE DATABASE {alias}")
        env = {
            **os.environ,
            "DATABASE_URL": server.url,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "TEST_SHARDS": json.dumps(urls),
        }
        for alias in ALIASES:
            manage(["migrate", f"--database={alias}", "--verbosity=0"], env)
        manage(["tenantqueue", "shards", "setup"], env)
        command = [sys.executable, "-m", "tests.contrib.shards.moves.run", *sys.argv[1:]]
        return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


def manage(arguments: list[str], env: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "django", *arguments], cwd=ROOT, env=env, check=True)


if __name__ == "__main__":
    sys.exit(main())
