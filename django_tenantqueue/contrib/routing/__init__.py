"""Routings: rows that choose the queue of new jobs."""
