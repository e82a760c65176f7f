"""The HTTP API and its tokens."""
