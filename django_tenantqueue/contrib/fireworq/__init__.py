"""The API of Fireworq."""
