"""The example project in one command: ``python -m example_project.demo``."""
