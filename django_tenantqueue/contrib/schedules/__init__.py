"""Schedules: jobs at times that rows or tasks name."""
