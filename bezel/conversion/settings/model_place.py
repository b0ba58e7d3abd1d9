"""Place of the files of a model that the catalogue does not have, by what an input says of it. Pure.

Leaves reading them to bezel.model_sources.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
REVISION = "revision"
"""Option of vLLM that chooses a branch, tag or commit of the hub's repository."""


def model_place(name: str, weights: Mapping[str, Any], project: str) -> str:
    """Where the files of a model are: `OWNER/NAME` of a hub or `gs://BUCKET/FOLDER`; "" where no place follows.

    A folder of the input's own machine or image is none: only who has it can name it.

    Args:
        name: Model argument of the input.
        weights: `bezel:weights`, as the argument and the mounts give it.
        project: Project of Google Cloud whose default bucket `weights` leaves out; "" for none.
    """
    if folder := weights.get("path"):
        bucket = weights.get("bucket") or (f"{project}-models" if project else "")
        return f"gs://{bucket}/{folder}" if bucket else ""
    return name if _HUB_ID.fullmatch(name) and ".." not in name else ""
