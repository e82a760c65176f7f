"""Routing: rows that choose the queue of a job."""
