"""Work of a request as the calls of functions that it takes, whatever else the machine does."""

import sys


class Count:
    """Calls of functions, and the deepest of them, while it is entered."""

    def __enter__(self):
        self.calls, self.deepest, depth = 0, 0, 0

        def note(_frame, event, _argument):  # plain steps: it is called for each function
            nonlocal depth
            if event == "return":
                depth -= 1
            elif event == "call":
                self.calls += 1
                depth += 1
                if depth > self.deepest:
                    self.deepest = depth
            elif event == "c_call":
                self.calls += 1

        sys.setprofile(note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
