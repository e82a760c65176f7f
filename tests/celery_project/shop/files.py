"""What tasks leave behind: JSON files in DATA_DIR."""

import json
from typing import Any

from django.conf import settings


def write(name: str, value: Any) -> None:
    settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
    (settings.DATA_DIR / f"{name}.json").write_text(json.dumps(value))


def read(name: str) -> Any:
    path = settings.DATA_DIR / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def names() -> list[str]:
    return sorted(path.stem for path in settings.DATA_DIR.glob("*.json"))


def delete(name: str) -> None:
    (settings.DATA_DIR / f"{name}.json").unlink(missing_ok=True)
