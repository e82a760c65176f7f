"""Write a call of Celery as a call of this package."""

from __future__ import annotations

import ast
from copy import deepcopy
from typing import TypeGuard

CANVAS = {
    "chain": "first.using(then=second.call(Placeholder('result'))).delay(…)",
    "chord": "group([task.call(…), …]).delay(on_done=callback.call(…))",
    "chunks": "a ConcurrentJobMonitor, or task.enqueue_many([…])",
    "group": "group([task.call(…), …]).delay(), or task.enqueue_many([…])",
    "signature": "task.call(…)",
    "starmap": "task.enqueue_many([(…), (…)])",
    "xmap": "task.enqueue_many([…])",
}
"""What is written for a use of Celery's canvas that cannot be rewritten here."""
GROUP_IN_CHAIN = (
    "first.using(then=start.call(…)).delay(…), and a task start that runs "
    "group([task.call(…), …]).delay(on_done=last.call(…)): a group behind a job is started by a "
    "task"
)
"""What is written for a chain that has a group."""
OPTIONS = {
    "countdown": "run_at",
    "eta": "run_at",
    "expires": "expires_at",
    "queue": "queue",
    "soft_time_limit": "timeout",
    "time_limit": "hard_timeout",
}
"""Options of apply_async, and those of .using()."""
LEFT_OUT = {
    "link": "then=… with its call",
    "link_error": "on_end=… with its call, which looks at current_job().previous.state",
    "priority": "priority=… of .using(…): a lower number runs first, 240 is the default",
    "task_id": "the id of a job is given by the database",
}


_LATER = "the jobs of a group start at once: enqueue a task with run_at=… that enqueues the group"
OF_CANVAS = {
    "chain": {"link_error": "on_end=… of each call, which looks at current_job().previous.state"},
    "group": {
        "countdown": _LATER,
        "eta": _LATER,
        "expires": "expires_at=… of the .using(…) of each call",
        "link": "on_done=… of .delay() with its call",
        "link_error": "on_done=… of .delay(), whose call looks at the states of the jobs",
    },
}
"""The same for a chain, and for a group or chord."""


class MethodCall(ast.Call):
    """The type of what is_call() has seen."""

    func: ast.Attribute


def is_call(node: ast.AST, *names: str) -> TypeGuard[MethodCall]:
    """Whether a node is a call of a method of one of these names."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in names
    )


def canvas(node: ast.Call | ast.BinOp, kind: str, *, starts: bool = True) -> str:
    """Return what to write for a chain, group or chord.

    `starts`: whether it is started here. A group that is kept in a variable is not.
    """
    inner = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) else node
    if isinstance(inner, ast.BinOp):
        found = _chain(_piped(inner))
    elif kind == "chain":
        found = _chain(inner.args)
    elif kind == "group":
        found = _group(inner.args) + (".delay()" if starts else "")
    elif kind == "chord":
        called = node.args if isinstance(node, ast.Call) and inner is not node else []
        found = _chord(inner.args[:1], [*inner.args[1:], *called])
    else:
        found = None
    return found or CANVAS[kind]


def _piped(node: ast.AST) -> list[ast.expr]:
    """Return the parts of `a | b | c`."""
    if isinstance(node, ast.BinOp):
        return [*_piped(node.left), *_piped(node.right)]
    assert isinstance(node, ast.expr)
    return [node]


def _chain(steps: list[ast.expr]) -> str | None:
    """Return `a.using(then=b.call(Placeholder('result'))).delay(1)`; None: it has other parts."""
    then, also = "", ""
    for number, each in reversed([*enumerate(steps)]):
        read = _signature(each)
        if read is None:
            has_group = any(
                isinstance(other, ast.Call) and ast.unparse(other.func).endswith("group")
                for other in steps
            )
            return GROUP_IN_CHAIN if has_group else None
        step, options = read
        if any(option.startswith("on_end=") for option in options):
            also = "; the call of on_end looks at current_job().previous.state"
        options = [*([f"then={then}"] if then else []), *options]
        task = ast.unparse(step.func.value) + (f".using({', '.join(options)})" if options else "")
        given = [ast.unparse(each) for each in (*step.args, *step.keywords)]
        if not number:
            return f"{task}.delay({', '.join(given)}){also}"
        placeholder = ["Placeholder('result')"] if step.func.attr == "s" else []
        then = f"{task}.call({', '.join([*placeholder, *given])})"
    return None


def _signature(node: ast.AST) -> tuple[MethodCall, list[str]] | None:
    """Return the call of s() or si(), and the options of .using() that its methods mean."""
    options: list[str] = []
    while is_call(node, "on_error", "link_error", "set"):
        if node.func.attr != "set":
            options += [f"on_end={_as_call(each)}" for each in node.args]
        elif all(each.arg in OPTIONS for each in node.keywords):
            options += [f"{OPTIONS[str(e.arg)]}={ast.unparse(e.value)}" for e in node.keywords]
        else:
            return None
        node = node.func.value
    return (node, options) if is_call(node, "s", "si") else None


def of_error(node: ast.Call) -> str:
    """Return what to write for task.s(1).on_error(other.s())."""
    read = _signature(node)
    if read is None:
        return LEFT_OUT["link_error"]
    step, options = read
    given = ", ".join(ast.unparse(each) for each in (*step.args, *step.keywords))
    call = f"{ast.unparse(step.func.value)}.using({', '.join(options)}).call({given})"
    return (
        f"{call}; the call of on_end looks at current_job().previous.state, and the callback of a "
        "group at the states of its jobs"
    )


def _as_call(node: ast.AST) -> str:
    return ast.unparse(_AsCalls().visit(deepcopy(node)))


class _AsCalls(ast.NodeTransformer):
    """Makes task.call(1) of task.s(1)."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if is_call(node, "s", "si"):
            node.func.attr = "call"
        return node


def _group(members: list[ast.expr]) -> str:
    made = [_as_call(each) for each in members]
    if len(made) != 1 or is_call(members[0], "s", "si"):
        return f"group([{', '.join(made)}])"
    return f"group({made[0][1:-1] if isinstance(members[0], ast.GeneratorExp) else made[0]})"


def _chord(header: list[ast.expr], callbacks: list[ast.expr]) -> str | None:
    if not header or len(callbacks) != 1:
        return None
    last, also = callbacks[0], ""
    while is_call(last, "on_error", "link_error", "set"):
        if last.func.attr != "set":
            also = ", and their states, in place of " + last.func.attr
        last = last.func.value
    if not is_call(last, "s", "si") and not isinstance(last, ast.Name):
        return None
    return (
        f"{_group(header)}.delay(on_done={_as_call(last)}); it reads the results by "
        f"current_job().summary.details(){also}"
    )


def apply_async(node: ast.Call, owner: ast.AST) -> str:
    """Return task.apply_async((1,), countdown=5) as task.using(run_at=5).delay(1)."""
    given = dict(zip(("args", "kwargs"), node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    options, notes = [], []
    for name, value in given.items():
        if name in OPTIONS:
            options.append(f"{OPTIONS[name]}={ast.unparse(value)}")
        elif name not in ("args", "kwargs"):
            notes.append(LEFT_OUT.get(name, f"{name} is left out"))
    notes += [
        f"the options of **{ast.unparse(keyword.value)} are those of .using(…)"
        for keyword in node.keywords
        if not keyword.arg
    ]
    arguments = [
        *_elements(given.get("args")),
        *_pairs(given.get("kwargs")),
    ]
    using = f".using({', '.join(options)})" if options else ""
    call = f"{ast.unparse(owner)}{using}.delay({', '.join(arguments)})"
    return "; ".join([call, *notes])


def started(node: ast.Call, step: MethodCall) -> str:
    """Return task.s(1).apply_async(countdown=5) as task.using(run_at=5).delay(1)."""
    names = [ast.Constant(each.arg) if each.arg else None for each in step.keywords]  # None: **
    given: list[ast.expr] = [
        ast.Tuple(step.args),
        ast.Dict([*names], [each.value for each in step.keywords]),
    ]
    return apply_async(ast.Call(node.func, given, node.keywords), step.func.value)


def options_of_canvas(node: ast.Call, kind: str) -> str:
    """Return what becomes of the options in chain(…).apply_async(countdown=5), or ""."""
    own = OF_CANVAS["chain" if kind == "chain" else "group"]
    said = [
        f"{OPTIONS[name]}={ast.unparse(keyword.value)} of .using(…)"
        if name in OPTIONS and name not in own
        else own.get(name, LEFT_OUT.get(name, f"{name} is left out"))
        for keyword in node.keywords
        if (name := keyword.arg)
    ]
    return "".join(f"; {each}" for each in said)


def _elements(node: ast.AST | None) -> list[str]:
    if node is None:
        return []
    if isinstance(node, ast.Tuple | ast.List):
        return [ast.unparse(element) for element in node.elts]
    return [f"*{ast.unparse(node)}"]


def _pairs(node: ast.AST | None) -> list[str]:
    if node is None:
        return []
    if isinstance(node, ast.Dict) and all(
        isinstance(key, ast.Constant) and str(key.value).isidentifier() for key in node.keys
    ):
        pairs = zip(node.keys, node.values, strict=True)
        return [f"{key.value}={ast.unparse(value)}" for key, value in pairs]  # type: ignore[union-attr]
    return [f"**{ast.unparse(node)}"]


def is_retries(node: ast.AST) -> bool:
    """Whether an expression is self.request.retries."""
    return isinstance(node, ast.Attribute) and ast.unparse(node).endswith(".request.retries")


class _Attempts(ast.NodeTransformer):
    """Makes current_job().attempt - 1 of self.request.retries."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if is_retries(node):
            return ast.parse("current_job().attempt - 1", mode="eval").body
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if is_retries(node.left) and ast.unparse(node).endswith(".retries + 1"):
            return ast.parse("current_job().attempt", mode="eval").body
        self.generic_visit(node)
        return node


def retry(node: ast.Call) -> str:
    """Return self.retry(exc=error, countdown=5) as raise Retry(after=5) from error."""
    node = _Attempts().visit(deepcopy(node))
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    after = f"after={given['countdown']}" if "countdown" in given else ""
    cause = f" from {given['exc']}" if "exc" in given else ""
    attempts = "; its max_retries is max_attempts of the task" if "max_retries" in given else ""
    return f"raise Retry({after}){cause}{attempts}"
