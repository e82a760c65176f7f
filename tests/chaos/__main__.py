"""Let everything go wrong at once, and see whether the guarantees hold: `make chaos`.

Starts a PostgreSQL and a fleet of workers of its own, gives them jobs, and meanwhile kills and
stops processes, restarts the server, ends connections and changes slots. Then it lets the jobs end
and audits every single run. Exits with 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from types import FrameType

from example_project.postgres import PostgresError

from .plan import FULL, SHORT, Scale
from .report import figure_lines, finding_lines, trouble_lines
from .server import Server, private_server


def main() -> int:
    """Run, print the report and return the exit code."""
    options = parse()
    scale = replace(
        SHORT if options.short else FULL,
        **{
            name: value
            for name, value in (("jobs", options.jobs), ("trouble_seconds", options.seconds))
            if value is not None
        },
    )
    seed = SystemRandom().randrange(10**6) if options.seed is None else options.seed
    if not hasattr(signal, "pidfd_send_signal"):
        print(
            "error: this run needs Linux, whose kernel tells when a process dies", file=sys.stderr
        )
        return 2
    if os.environ.get("DATABASE_URL"):
        print("DATABASE_URL is left alone: this run restarts a server of its own.")
    print(
        f"seed {seed}: {scale.jobs:,} jobs, trouble for {scale.trouble_seconds:.0f} s", flush=True
    )
    # Ends the workers and the server, as CTRL-C does.
    signal.signal(signal.SIGTERM, on_terminate)
    directory = Path(tempfile.mkdtemp(prefix="tenantqueue-chaos-"))
    code = 2
    try:
        with private_server() as server:
            code = perform(server, scale, seed, directory)
    except PostgresError as error:
        print(f"error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
    finally:
        if code == 0 and not options.keep:
            shutil.rmtree(directory)
        else:
            print(f"logs and evidence: {directory}")
    return code


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    add = parser.add_argument
    add("--short", action="store_true", help="about a minute instead of ten")
    add("--seed", type=int, help="repeat the jobs and the dice of a run (its times will differ)")
    add("--jobs", type=int, help="how many jobs")
    add("--seconds", type=float, help="how long the trouble lasts")
    add("--keep", action="store_true", help="keep logs and evidence though all is well")
    return parser.parse_args()


def perform(server: Server, scale: Scale, seed: int, directory: Path) -> int:
    os.environ["DATABASE_URL"] = server.url
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.chaos.settings"
    import django

    django.setup()
    # It needs the settings.
    from .run import ChaosRun

    begun = time.monotonic()
    run = ChaosRun(scale, seed, server, directory)
    evidence, findings = run.perform()
    run.keep(evidence)
    deaths = sum(life.dead_at is not None for life in evidence.lives.values())
    for lines in (
        trouble_lines(run.log.counts(), deaths),
        figure_lines(evidence),
        finding_lines(findings),
    ):
        print("", *lines, sep="\n")
    wrong = sum(not finding.ok for finding in findings)
    verdict = f"{wrong} of {len(findings)} are WRONG" if wrong else f"all {len(findings)} are OK"
    print(f"\n{verdict} (seed {seed}, {time.monotonic() - begun:.0f} s)")
    return 1 if wrong else 0


def on_terminate(number: int, frame: FrameType | None) -> None:
    """End as after CTRL-C."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
