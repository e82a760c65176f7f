"""The heartbeat file: shows probes, without the database, that a supervisor is alive and works."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from .child import Child

logger = logging.getLogger("django_tenantqueue")


class HeartbeatFile:
    """A small JSON file, replaced whole every second."""

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path else None
        self._write_at = 0.0

    def write(self, children: Collection[Child], reason: str | None) -> None:
        """Write the file if it is due. `reason`: why the worker is not ready, None if it is."""
        now = time.monotonic()
        if self._path is None or now < self._write_at:
            return
        self._write_at = now + 1.0
        content = {
            "pid": os.getpid(),
            "at": time.time(),
            "ready": reason is None,
            "reason": reason or "",
            "children": [child.pid for child in children],
        }
        aside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            aside.write_text(json.dumps(content))
            aside.replace(self._path)
        except OSError as error:
            logger.warning("writing the heartbeat file failed: %s", error)

    def remove(self) -> None:
        """Remove the file: the worker ends."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
