"""Check that the tests of the guarantees can fail: ``python -m tests.mutants [NAME ...]``.

Each mutant (see catalogue.py) takes one mechanism out of the package. The tree is copied, first as
it is (the tests of all mutants must pass) and then with one mutant at a time: at least one of its
tests must fail, in the test itself and not in its set-up. All share one server, where each has a
database of its own.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from example_project.postgres import database
from tests.mutants.catalogue import ROOT, BrokenMutantError, Mutant, read_mutants
from tests.servers import SETTINGS
from tests.zygote import DJANGO, Zygote

TIMEOUT_SECONDS = 150
TEMPLATE = "mutants_template"
PYTEST = ("pytest", "_pytest.assertion.rewrite", "environ", "execnet", "xml.etree.ElementTree")
"""What the tests of a mutant import besides: pytest itself, and what its plugins need."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these mutants")
    options = parser.parse_args()
    try:
        known = read_mutants()
    except BrokenMutantError as error:
        sys.exit(f"error: {error}")
    if unknown := set(options.names) - known.keys():
        sys.exit(f"error: no mutants {sorted(unknown)}; there are: {', '.join(known)}")
    mutants = [known[name] for name in options.names or known]
    with (
        database(SETTINGS) as server_url,
        closing(Zygote((*DJANGO, *PYTEST))) as zygote,
        tempfile.TemporaryDirectory(prefix="tenantqueue-mutants-") as original,
    ):
        make_template(server_url)
        copy_files(Path(original))
        place = Place(server_url, zygote, Path(original))
        return try_all(mutants, place)


@dataclass(frozen=True, slots=True)
class Place:
    """Where tests run: databases of this server, forks of this process, copies of this tree."""

    server_url: str
    zygote: Zygote
    original: Path


def make_template(server_url: str) -> None:
    """Migrate a database of which each mutant gets a copy, unless it changes the migrations."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}".encode())
    subprocess.run(
        [sys.executable, "-m", "django", "migrate", "--verbosity=0"],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": on_server(server_url, TEMPLATE),
        },
        check=True,
    )


def on_server(server_url: str, name: str) -> str:
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def try_all(mutants: Sequence[Mutant], place: Place) -> int:
    """Try the mutants, print what became of each, and return the exit code."""
    started = time.monotonic()
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with copied_tree(place) as tree:
        outcome = run_tests(tree, tests, place, at_once=2)
    if outcome != "survived":
        print(f"error: without any mutant: {outcome}", file=sys.stderr)
        return 1
    width = max(len(mutant.name) for mutant in mutants)
    print(f"{'mutant':{width}}  {'result':16}  seconds  tests", flush=True)
    missed = 0

    def timed(mutant: Mutant) -> tuple[str, float]:
        begun = time.monotonic()
        return try_mutant(mutant, place), time.monotonic() - begun

    # Each waits most of its time: three at once for each core.
    with ThreadPoolExecutor(3 * (os.cpu_count() or 1)) as pool:
        for mutant, (outcome, seconds) in zip(mutants, pool.map(timed, mutants), strict=True):
            missed += not outcome.startswith("caught")
            print(
                f"{mutant.name:{width}}  {outcome:16}  {seconds:7.1f}  {len(mutant.tests)}",
                flush=True,
            )
    total = time.monotonic() - started
    print(f"{len(mutants) - missed} of {len(mutants)} mutants caught in {total:.0f} s")
    return 1 if missed else 0


def try_mutant(mutant: Mutant, place: Place) -> str:
    with copied_tree(place) as tree:
        try:
            edited = mutant.edited(tree)
        except BrokenMutantError as error:
            return f"BROKEN: {error}"
        for path, text in edited.items():
            path.write_text(text)
        migrates = any(path.parent.name == "migrations" for path in edited)
        return run_tests(tree, mutant.tests, place, migrates=migrates)


@contextmanager
def copied_tree(place: Place) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenantqueue-mutant-") as directory:
        subprocess.run(["cp", "-a", f"{place.original}/.", directory], check=True)
        yield Path(directory)


def copy_files(original: Path) -> None:
    """Copy the files that git knows of, as they are now in the working tree.

    Their bytecode comes along; Python compiles those anew that a mutant changes, by their time.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source = ROOT / name
        if source.is_file():  # not one that was removed and is still in the index
            (original / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, original / name)
            for cached in source.parent.glob(f"__pycache__/{source.stem}.*.pyc"):
                beside = (original / name).parent / "__pycache__"
                beside.mkdir(exist_ok=True)
                shutil.copy2(cached, beside / cached.name)


def run_tests(
    tree: Path, tests: Sequence[str], place: Place, *, at_once: int = 1, migrates: bool = False
) -> str:
    """Run the tests in the copy, some files at once, and say what became of the mutant."""
    report, log = tree / "report.xml", tree / "output"
    options = ["-q", "-p", "no:cacheprovider", "--exitfirst", f"--junit-xml={report}"]
    options += ["-p", "no:hypothesispytest"]  # its import takes longer than many a test
    options += ["--reruns=0"]  # what is missing is late each time
    if at_once > 1:
        options += ["-n", str(at_once), "--dist", "loadfile"]
    # The copy comes before the installed package, in the workers that tests start as well.
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["DATABASE_URL"] = on_server(place.server_url, tree.name)
    if not migrates:
        environment["TENANTQUEUE_TEST_TEMPLATE"] = TEMPLATE
    process = place.zygote.start("pytest", [*options, *tests], environment, log, folder=tree)
    try:
        code = process.wait(TIMEOUT_SECONDS * at_once)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10.0)
        return "caught (hangs)"
    if code == 0:
        return "survived"
    if code == 1 and failed_in_a_test(report):
        return "caught"
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    return f"BROKEN: pytest ended with {code}\n{tail}"


def failed_in_a_test(report: Path) -> bool:
    """Whether a test body failed, rather than an import or a fixture."""
    return report.exists() and ElementTree.parse(report).find(".//failure") is not None


if __name__ == "__main__":
    sys.exit(main())
