"""The messages of alerts: what their jobs store, and the text for each channel."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.utils.translation import gettext, ngettext

from ...status.display_limits import MESSAGE
from .models import Alert, AlertRule

LONGEST = MESSAGE // 4
"""Characters of the name of an object that a message has."""

Message = dict[str, Any]
"""The members of the generic JSON, and `id`."""
SHARED = ("id", "at", "more", "left_out", "test")
"""Members that are stored as they are."""


def make_message(
    rule: AlertRule,
    alerts: Iterable[Alert] = (),
    *,
    now: datetime,
    more: int = 0,
    left_out: int = 0,
    test: bool = False,
) -> Message:
    """Return a message with a new id. `more` and `left_out` count alerts that it does not list."""
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "at": now.isoformat(),
        "rule": rule.name,
        "kind": rule.kind,
        "tenant": rule.tenant,
        "alerts": [_entry(alert, _state(alert)) for alert in alerts],
        "more": more,
        "left_out": left_out,
        "test": test,
    }


def stored(message: Message) -> dict[str, Any]:
    """Return what a job stores of a message: of its alerts only ids and states.

    Their texts stay in their rows, which are erased with their tenants.
    """
    alerts = [[alert["id"], alert["state"]] for alert in message["alerts"]]
    return {**{name: message[name] for name in SHARED}, "alerts": alerts}


def read_message(rule: AlertRule, kept: dict[str, Any]) -> Message:
    """Return the message from what stored() kept, without alerts that were deleted."""
    states = dict(kept["alerts"])
    alerts = Alert.objects.using(rule._state.db).filter(rule=rule).in_bulk(states)
    entries = [_entry(alerts[pk], state) for pk, state in states.items() if pk in alerts]
    message = make_message(rule, now=datetime.fromisoformat(kept["at"]))
    return message | {name: kept[name] for name in SHARED} | {"alerts": entries}


def _state(alert: Alert) -> str:
    if alert.resolved_at:
        return "resolved"
    return "open" if alert.notified_at is None else "still open"


def _entry(alert: Alert, state: str) -> dict[str, Any]:
    resolved = alert.resolved_at if state == "resolved" else None
    return {
        "id": alert.pk,
        "state": state,
        "object": alert.label[:LONGEST],
        "text": alert.text,
        "opened_at": alert.opened_at.isoformat(),
        "resolved_at": resolved and resolved.isoformat(),
    }


def json_of(message: Message) -> str:
    """Return the body of a generic webhook."""
    data = {name: value for name, value in message.items() if name not in ("id", "at")}
    return json.dumps({"type": "tenantqueue.alerts", "timestamp": message["at"], "data": data})


def slack_of(message: Message) -> str:
    """Return the body of a Slack webhook. It cannot mention users or channels."""
    text = f"*{title_of(message)}*\n{lines_of(message)}"
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return json.dumps({"text": text})


def title_of(message: Message) -> str:
    """Return the subject: one line."""
    states = [alert["state"] for alert in message["alerts"]]
    resolved = states.count("resolved")
    counts = [(len(states) - resolved, gettext("%d open")), (resolved, gettext("%d resolved"))]
    summary = ", ".join(text % count for count, text in counts if count)
    tenant = message["tenant"]
    whose = "" if tenant is None else f"{tenant or '–'} / "
    if message["test"]:
        summary = gettext("test")
    return " ".join(f"{whose}{message['rule']}: {summary or gettext('digest')}".split())


def lines_of(message: Message) -> str:
    """Return the text below the title."""
    if message["test"]:
        return gettext("This is a test. Messages of this rule arrive here.")
    lines = [_line(alert) for alert in message["alerts"]]
    if more := message["more"]:
        lines.append(ngettext("… and %d more alert.", "… and %d more alerts.", more) % more)
    if left := message["left_out"]:
        text = ngettext(
            "%d alert was left out: it opened and was resolved after the limit of messages per "
            "hour was reached.",
            "%d alerts were left out: they opened and were resolved after the limit of messages "
            "per hour was reached.",
            left,
        )
        lines.append(text % left)
    return "\n".join(lines)


def _line(alert: dict[str, Any]) -> str:
    words = {
        "open": gettext("OPEN"),
        "still open": gettext("STILL OPEN"),
        "resolved": gettext("RESOLVED"),
    }
    times = gettext("since %s") % _time(alert["opened_at"])
    if alert["resolved_at"]:
        times = gettext("from %(start)s to %(end)s") % {
            "start": _time(alert["opened_at"]),
            "end": _time(alert["resolved_at"]),
        }
    return f"{words[alert['state']]} {' '.join(alert['object'].split())}: {alert['text']} ({times})"


def _time(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S %Z}"
