#!/usr/bin/env python
"""Django's commands for the example project: ``python example_project/manage.py …``."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
