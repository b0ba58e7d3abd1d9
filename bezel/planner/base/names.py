"""Names of cloud resources, computed from the stack's name so that two stacks of a project never share one.

Owns the platforms' rules for names. Names are computed here so that policies know them at preview.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.planner.base.settings import Settings
    from bezel_catalog import Model

PREFIX = "bezel"
SERVICE_LENGTH = 49  # Cloud Run
ACCOUNT_LENGTH = 30  # service account id
REPOSITORY_LENGTH = 63  # Artifact Registry
LABEL_LENGTH = 63


# Old projects have a domain in front of the id. New ids have 6 characters or more.
_PROJECT_ID = re.compile(r"(?:[a-z0-9][a-z0-9.-]*:)?[a-z](?:[a-z0-9-]{0,28}[a-z0-9])?")


def is_folder(path: str) -> bool:
    """Whether a path is a folder inside of a bucket."""
    parts = path.strip("/").split("/")
    return "://" not in path and path.isprintable() and not {"", ".", ".."} & set(parts)


def is_project_id(text: str) -> bool:
    """Whether a text is a valid Google Cloud project ID, which a project's number and display name are not."""
    return _PROJECT_ID.fullmatch(text) is not None


def resource_name(stack: str, *, suffix: str = "", length: int) -> str:
    """`bezel-<stack>[-<suffix>]` in lower case letters, digits and hyphens, at most `length` characters.

    A name that had to be changed or cut ends in six digits of the stack name's SHA-256, so that it stays unique.
    """
    plain = re.sub(r"[^a-z0-9-]+", "-", stack.lower()).strip("-")
    name = "-".join(part for part in (PREFIX, plain, suffix) if part)
    if plain == stack and len(name) <= length:
        return name
    digest = hashlib.sha256(stack.encode()).hexdigest()[:6]
    room = length - len(digest) - 1 - (len(suffix) + 1 if suffix else 0)
    return "-".join(part for part in (f"{PREFIX}-{plain}"[:room].strip("-"), suffix, digest) if part)


def label(text: str) -> str:
    """Text as a label's value: lower case letters, digits, hyphens and underscores, at most 63 characters."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower())[:LABEL_LENGTH].strip("-")


def stack_labels(settings: Settings, model: Model, stack: str) -> dict[str, str]:
    """Labels of every resource that takes them: the stack file's, and those of ownership, which nothing overrides."""
    return {
        **settings.labels,
        "managed-by": PREFIX,
        "stack": label(stack),
        "environment": settings.environment,
        "model": label(model.id),
    }


_OWN_LABEL = re.compile(rf"managed-by|stack|environment|model|{PREFIX}(?:-.*)?|goog(?:-.*)?", re.IGNORECASE)


def is_own_label(key: str) -> bool:
    """Whether a label marks ownership: those of a stack, of leases and of load jobs, and Google's own."""
    return _OWN_LABEL.fullmatch(key.strip()) is not None
