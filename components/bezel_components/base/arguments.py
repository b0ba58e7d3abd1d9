"""Base of the components' argument models, and the resource options of their children.

A value that a policy reads (a member, an account that code runs as, an argument, a label, a region) is typed `str`:
in a preview, policies can judge only known values. What none reads is `Text`: the name of a bucket, of a network, of a
subnetwork (docs/policies.md, "Inputs that may be unknown"). An image is `Text` too, and refused while it is unknown.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pulumi
from pydantic import BaseModel, ConfigDict, ValidationError

from bezel_components.base.argument_errors import arguments_error

Text = str | pulumi.Output[str]
"""A string that may become known only while the stack is deployed."""


def join_texts(*parts: Text) -> Text:
    """Texts one after the other; known if each of them is."""
    plain_texts = [part for part in parts if isinstance(part, str)]
    return "".join(plain_texts) if len(plain_texts) == len(parts) else pulumi.Output.concat(*parts)


class ComponentArgs(BaseModel):
    """Base of the argument models: immutable, and an unknown argument is an error.

    Raises:
        ArgumentsError: Arguments are wrong: each with value, consequence and repair.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    if not TYPE_CHECKING:  # type checkers see the fields as arguments

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise arguments_error(type(self), error) from None


def child_options(
    parent: pulumi.Resource,
    opts: pulumi.ResourceOptions | None,
    *,
    depends_on: Sequence[pulumi.Resource] = (),
    **more: Any,
) -> pulumi.ResourceOptions:
    """Return the options of a component's child: its parent, and the component's own dependencies.

    A component's `depends_on` is not recorded for its children: they would be created in the right order, but a
    destroy would delete the account before the service that runs as it. Nothing else of `opts` is copied, since
    provider and protection come through the parent.

    Args:
        parent: The component.
        opts: The options that the component was made with.
        depends_on: Further dependencies of this child.
        more: Further options of the child, e.g. `custom_timeouts`.
    """
    inherited: Any = opts.depends_on if opts is not None and opts.depends_on is not None else []
    waits = list(inherited) if isinstance(inherited, Sequence) else [inherited]
    return pulumi.ResourceOptions(parent=parent, depends_on=[*depends_on, *waits], **more)
