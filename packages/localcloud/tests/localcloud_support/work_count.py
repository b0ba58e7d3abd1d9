"""Work of a request as the calls of functions that it takes, whatever else the machine does."""

import sys


class Count:
    """Calls of functions, and the deepest of them, while it is entered."""

    def __enter__(self):
        self.calls, self.depth, self.deepest = 0, 0, 0
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _event(self, _frame, event, _argument):
        self.calls += event in {"call", "c_call"}
        self.depth += (event == "call") - (event == "return")
        self.deepest = max(self.deepest, self.depth)
