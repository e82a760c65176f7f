"""Benchmarks: real `runworker` processes on a real PostgreSQL. See README.md beside this file."""
