"""Moves of tenants under load, with movers that are killed. See __main__.py."""
