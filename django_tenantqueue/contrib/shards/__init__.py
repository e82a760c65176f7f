"""Shards: the jobs of tenants, spread over several databases."""
