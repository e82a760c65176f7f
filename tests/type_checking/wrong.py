# pyright: strict
"""Fourteen planted errors, each in a line that says so. Only checkers read this."""

from __future__ import annotations

from django_tenantqueue import Serial, Unique, delayed, task


@task
def build(order_id: int) -> str:
    return str(order_id)


def calls() -> None:
    build.delay("7")  # wrong: the type of an argument
    build.delay()  # wrong: an argument is missing
    build.using(queue="x").delay(7, urgent=True)  # wrong: an argument that does not exist
    build.call(None)  # wrong: the type of an argument of a description
    build.enqueue_many(["7", "8"])  # wrong: the type of the argument of many jobs
    delayed(build)("7")  # wrong: the type of an argument, of what is delayed
    _number: int = build(7)  # wrong: the type of the result


def options() -> None:
    build.using(quue="x")  # wrong: the name of an option
    build.using(max_attempts="3")  # wrong: the type of an option
    Serial("s", on_wait="wait")  # wrong: the mode of a session
    build.using(on_wait="skip")  # wrong: an option of a session alone
    Unique("until_exectued")  # wrong: the mode
    task(priorty=120)(print)  # wrong: the name of an option of @task
    task(hooks=object())(print)  # wrong: hooks that are no hooks
