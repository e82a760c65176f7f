"""Tests with real `runworker` processes. As an app, it brings the tasks that they run."""
