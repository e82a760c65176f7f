"""The project's app. Its receivers write which process sent which signal to $PROJECT_LOG."""

import os
from typing import Any

from django import VERSION
from django.apps import AppConfig

if VERSION >= (6, 0):
    from django.tasks.signals import task_finished, task_started
else:
    from django_tasks.signals import task_finished, task_started


def write(name: str, task_result: Any) -> None:
    if path := os.environ.get("PROJECT_LOG"):
        with open(path, "a") as log:
            log.write(
                f"{name} {os.getpid()} {task_result.id} {task_result.status}"
                f" {' '.join(error.exception_class_path for error in task_result.errors)}\n"
            )


def on_start(task_result: Any, **kwargs: Any) -> None:
    write("started", task_result)


def on_finish(task_result: Any, **kwargs: Any) -> None:
    write("finished", task_result)


class ProjectConfig(AppConfig):
    name = "tests.contrib.project"
    label = "tasks_project"

    def ready(self) -> None:
        task_started.connect(on_start)
        task_finished.connect(on_finish)
