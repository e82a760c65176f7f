"""The HTTP API of Fireworq 1.x: its clients switch by their base URL."""
