"""Template tags for the pages of users."""
