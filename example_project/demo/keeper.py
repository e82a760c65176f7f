"""Keep the embedded server running for as long as a demo needs it.

A process of its own does it: it waits for the end of its standard input, which only the demo holds
open. So the server is stopped even when the demo is killed. Of several demos on the same server,
the last one stops it; a server that was started by hand is left running.
"""

import argparse
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from example_project.postgres import Cluster, PostgresError

PROJECT = Path(__file__).resolve().parents[2]
OURS, NOT_OURS = b"started by a demo", b"started by hand"


@contextmanager
def running_server(data_dir: Path) -> Iterator[str]:
    """Yield the URL of the server kept in data_dir, started if need be; raises PostgresError."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "example_project.demo.keeper", f"--data-dir={data_dir}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
        start_new_session=True,  # CTRL-C goes to the demo, not to the keeper
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        said = json.loads(keeper.stdout.readline() or '{"error": "the server was not started"}')
        if "error" in said:
            raise PostgresError(said["error"])
        yield said["url"]
    finally:
        keeper.stdin.close()
        keeper.wait(timeout=90)
        keeper.stdout.close()


def keep(cluster: Cluster) -> None:
    """Start the server, say where it is, and stop it when standard input ends."""
    # Held shared by every demo that uses the server; who gets it alone is the only one.
    users = os.open(cluster.directory / "demo.lock", os.O_RDWR | os.O_CREAT, 0o600)
    if _alone(users) and os.pread(users, 100, 0) != OURS:
        _note(users, NOT_OURS if cluster.pid is not None else OURS)
    elif cluster.pid is None:
        _note(users, OURS)
    fcntl.flock(users, fcntl.LOCK_SH)
    print(json.dumps({"url": cluster.start()}), flush=True)
    sys.stdin.buffer.read()
    if _alone(users):
        if os.pread(users, 100, 0) == OURS:
            cluster.stop()
        _note(users, b"")


def _alone(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _note(users: int, text: bytes) -> None:
    os.ftruncate(users, 0)
    os.pwrite(users, text, 0)


def main() -> int:
    """Keep the server that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    try:
        keep(Cluster(parser.parse_args().data_dir))
    except PostgresError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
