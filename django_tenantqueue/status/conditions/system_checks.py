"""System checks of conditions."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.checks import CheckMessage, Error

from ...features import LONGEST_NAME
from . import conditions


def check_conditions(**kwargs: Any) -> list[CheckMessage]:
    """E019: two conditions have one code, or a code is too long for a rule of alerts."""
    codes = Counter(str(condition.code) for condition in conditions())
    said = [f"{n} conditions have the code {code!r}" for code, n in codes.items() if n > 1]
    long = [code for code in codes if len(code) > LONGEST_NAME]
    said += [f"The code {code!r} of a condition is longer than {LONGEST_NAME}" for code in long]
    hint = (
        "Rename that of your own app: alert rules and metrics know a condition by its code. See "
        "docs/howto/own-apps.md."
    )
    return [Error(f"{text}.", hint=hint, id="tenantqueue.E019") for text in said]
