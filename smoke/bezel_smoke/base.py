"""Base of the smoke resources: when they run again, how they fail, and what they store.

The providers are classes of importable modules without attributes: the state holds their names only. Never rename or
move them, or an old stack could not be destroyed.
"""

import re
from typing import Any, ClassVar

from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, ResourceProvider, UpdateResult

from bezel.rest import url_for_token
from bezel_base.errors import UserError
from bezel_components.base.dynamic import DeployError, Progress, differ

_SERVICE = re.compile("projects/[^/]+/locations/[^/]+/services/[^/]+")


class SmokeError(DeployError):
    """A smoke check failed."""


SmokeError.__qualname__ = "smoke"  # shown in place of the class's name


class SmokeProvider(ResourceProvider):
    """Provider that runs at create and at update, stores its inputs and its result, and has nothing to delete.

    A failed run leaves the state unchanged, so the next update runs it again: it fails until the cause is repaired.
    """

    serialize_as_secret_always = False
    settings: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[tuple[str, ...]] = ()
    positive: ClassVar[tuple[str, ...]] = ("deadline_seconds",)
    kind: ClassVar[str] = ""

    def run(self, props: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Do the work and return the outputs beside the inputs.

        Raises:
            UserError: The check failed.
        """
        raise NotImplementedError

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Report settings that cannot work, in previews already; values not known yet pass."""
        failures = [
            CheckFailure(key, f"{key} is missing: the {self.kind} check cannot run without it.")
            for key in self.required
            if news.get(key) in (None, "")
        ]
        failures += [
            CheckFailure(key, f"{key} is {value:g}: the {self.kind} check would do nothing. Set it above 0.")
            for key in self.positive
            if isinstance(value := news.get(key), (int, float)) and value <= 0
        ]
        url, service = news.get("url"), news.get("service")
        if isinstance(url, str) and url:
            try:
                url_for_token(url, "url")
            except ValueError as error:
                failures.append(CheckFailure("url", str(error)))
        if isinstance(service, str) and service and not _SERVICE.fullmatch(service):
            failures.append(CheckFailure("service", f"expected projects/P/locations/L/services/S, got {service!r}."))
        return CheckResult(news, failures)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Report a change when a setting differs or is not known yet, and not otherwise."""
        return DiffResult(changes=differ(_olds, _news, self.settings))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Run for the first time, or again after a failed run."""
        return CreateResult(f"{props.get('service') or props['url']}/{self.kind}", self._outputs(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Run again."""
        return UpdateResult(self._outputs(_news))

    def _outputs(self, props: dict[str, Any]) -> dict[str, Any]:
        progress = Progress(props.get("urn"))
        try:
            outputs = self.run(dict(props), progress)
        except UserError as error:
            raise SmokeError(*error.problems) from None
        finally:
            progress.close()
        return {key: value for key, value in props.items() if key != "__provider"} | outputs
