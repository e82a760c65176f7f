"""What HTTP adds to the core."""

from __future__ import annotations

from collections.abc import Iterable

from ...calls.call import Call
from ...calls.options import Options
from ...features import Feature
from ...http.end import end_call


class Http(Feature):
    """See features.py for when each method is called."""

    def follow_ups(self, options: Options, tenant: str) -> Iterable[Call]:
        """Return the call that posts the end of the job to its `callback_url`."""
        return () if options.callback_url is None else (end_call(options.callback_url, tenant),)
