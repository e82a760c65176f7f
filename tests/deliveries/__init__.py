"""An app of a project that adds to the queue: the example of docs/howto/own-apps.md."""

NEEDS = "alerts http"
