"""Base of the checks: dynamic resources of a Python program, custom resources of the Pulumi package.

A program's dynamic resource is run by the plugin of dynamic resources, which reads the provider's class from a pickle.
A component that the package (`plugin/`) hosts for a program in another language has no such plugin beside it: there the
package itself is the provider, under `bezel:MODULE:NAME`, and calls the same provider classes.
"""

import re
from typing import Any

import pulumi
from pulumi.dynamic import Resource, ResourceProvider

PACKAGE = "bezel"
_UPPER = re.compile(r"(?<!^)([A-Z])")
_in_package = False


def declare_in_package() -> None:
    """Have this process's checks declared as resources of the package: for the package's own process."""
    global _in_package  # noqa: PLW0603 - a process either hosts the package or runs a program
    _in_package = True


def is_in_package() -> bool:
    """Whether this process hosts the package: it sees one component of a program in another process."""
    return _in_package


def camel_case(name: str) -> str:
    """`served_model` as the package's schema names it: `servedModel`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def snake_case(name: str) -> str:
    """`servedModel` as Python names it: `served_model`."""
    return _UPPER.sub(r"_\1", name).lower()


class CheckResource(Resource):
    """A resource whose provider is a class of this repository."""

    def __init__(
        self,
        provider: ResourceProvider,
        name: str,
        props: dict[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        if not _in_package:
            super().__init__(provider, name, props, opts)
            return
        token = f"{PACKAGE}:{self._resource_type_name.removeprefix('dynamic/')}"
        # Not the direct base's, which would add the pickle.
        pulumi.CustomResource.__init__(
            self, token, name, {camel_case(key): value for key, value in props.items()}, opts
        )

    def translate_output_property(self, prop: str) -> str:
        """The attribute of an output: that of Python, in the package too."""
        return snake_case(prop) if _in_package else prop
