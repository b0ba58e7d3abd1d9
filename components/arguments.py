"""What all components share: the base of their argument models, and the options that they give their children.

A value that a policy gates (an account, a bucket, a network, a repository) is typed `str` in every component, never
`Text`: policies can judge a preview only by what is known there.
"""

from collections.abc import Sequence
from typing import Any

import pulumi
from pydantic import BaseModel, ConfigDict

Text = str | pulumi.Output[str]
"""A string that may become known only while the stack is deployed."""


class ComponentArgs(BaseModel):
    """Base of the argument models: immutable, and an argument that does not exist is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def child_options(
    parent: pulumi.Resource,
    opts: pulumi.ResourceOptions | None,
    *,
    depends_on: Sequence[pulumi.Resource] = (),
    **more: Any,
) -> pulumi.ResourceOptions:
    """Give the options of a component's child: its parent, and what the component itself was told to wait for.

    A component's `depends_on` is not recorded for its children: they would be created in the right order, but a
    destroy would delete the account before the service that runs as it. Nothing else of `opts` is taken over, since
    provider and protection come through the parent.

    Args:
        parent: The component.
        opts: The options that the component was made with.
        depends_on: What this child waits for besides.
        more: Further options of the child, e.g. `custom_timeouts`.
    """
    inherited: Any = opts.depends_on if opts is not None and opts.depends_on is not None else []
    waits = list(inherited) if isinstance(inherited, Sequence) else [inherited]
    return pulumi.ResourceOptions(parent=parent, depends_on=[*depends_on, *waits], **more)
