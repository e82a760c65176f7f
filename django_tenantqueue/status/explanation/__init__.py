"""Why a job does not run: every cause there is, worst first, and what would change it."""

from .answer import Cause, Code, Explanation, Operator, Target
from .explain import explain

__all__ = ["Cause", "Code", "Explanation", "Operator", "Target", "explain"]
