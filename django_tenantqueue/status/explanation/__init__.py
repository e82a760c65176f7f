"""Why a job does not run: every cause there is, worst first, and what would change it.

The sentences are those of `status/conditions/core.py`.
"""

from ..conditions import Code
from .answer import Cause, Explanation, Operator, Target
from .explain import explain
from .monitor_bounds import Bound, MonitorAnswer, explain_monitor

__all__ = [
    "Bound",
    "Cause",
    "Code",
    "Explanation",
    "MonitorAnswer",
    "Operator",
    "Target",
    "explain",
    "explain_monitor",
]
