"""Plans: how many reports of an airline run at once, and its share of turns."""

from dataclasses import dataclass

REPORTS = "reports"
HEAVY = "heavy"
LOGBOOKS = "logbooks"
"""Queues. Heavy reports have one of their own, so that light ones never wait behind them, and so
have the logbooks. There are hundreds of them at once."""
EXPORTS = "exports"
"""Queue of what is sent to slow airports. No plan has it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: slots of each queue, and the weight of both."""

    name: str
    title: str
    slots: dict[str, int]
    weight: int


FREE = Plan("free", "Free", {REPORTS: 1, HEAVY: 1, LOGBOOKS: 1}, weight=1)
TEAM = Plan("team", "Team", {REPORTS: 2, HEAVY: 1, LOGBOOKS: 2}, weight=2)
ENTERPRISE = Plan("enterprise", "Enterprise", {REPORTS: 5, HEAVY: 2, LOGBOOKS: 4}, weight=4)
PLANS = {plan.name: plan for plan in (FREE, TEAM, ENTERPRISE)}
CHOICES = [(plan.name, plan.title) for plan in PLANS.values()]

FLIGHTS_OF_ENTERPRISE = 40_000
FLIGHTS_OF_TEAM = 10_000


def plan_for(flights: int, total: int) -> Plan:
    """Return the plan that an airline with this share of all flights would buy."""
    yearly = flights * 336_776 // max(total, 1)
    if yearly >= FLIGHTS_OF_ENTERPRISE:
        return ENTERPRISE
    return TEAM if yearly >= FLIGHTS_OF_TEAM else FREE
