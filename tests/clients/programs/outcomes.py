"""Reports of calls, for the programs beside this module: a JSON object a line for each call.

Standard library only: it runs with any client. Leaves out what is called.
"""

import json
import traceback
from collections.abc import Callable


class Calls:
    """The calls of one client.

    Args:
        client: Name and version, e.g. "openai 2.54.0".
    """

    def __init__(self, client: str) -> None:
        self._client = client

    def passes(self, name: str, call: Callable[[], object]) -> None:
        """Make a call, which checks its own result by `assert`, and report it."""
        text = ""
        try:
            call()
        except Exception as error:  # noqa: BLE001 -- whatever a client raises is the outcome
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})"
        self._report(name, text)

    def raises(self, name: str, kind: type[Exception], call: Callable[[], object]) -> None:
        """Make a call and report it; it passes if it raises `kind`."""
        text = "it was accepted"
        try:
            call()
        except kind:
            text = ""
        except Exception as error:  # noqa: BLE001 -- whatever a client raises is the outcome
            text = f"{type(error).__name__}: {error}"
        self._report(name, text)

    def lacks(self, name: str, kind: type[Exception], call: Callable[[], object], reason: str) -> None:
        """Make a call that is known not to be served: it has to raise `kind`; the reason is reported."""
        try:
            call()
        except kind:
            self._report(name, reason, "not served")
        except Exception as error:  # noqa: BLE001 -- whatever a client raises is the outcome
            self._report(name, f"{type(error).__name__}: {error}")
        else:
            self._report(name, "it is served: expect that it passes")

    def _report(self, name: str, text: str, outcome: str = "") -> None:
        outcome = outcome or ("failed" if text else "passed")
        print(json.dumps({"client": self._client, "call": name, "outcome": outcome, "text": text[:1000]}), flush=True)
