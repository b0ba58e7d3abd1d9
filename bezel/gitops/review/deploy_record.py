"""Record of a stack's last deploy in the state bucket: whether it reached its end, and the changes that it began.

`deploys/PROJECT/STACK.json`, written under the stack's lock by the account that deploys; the preview's account cannot
write here. After a killed run the job runs again on a state that was not reviewed: the record says what was.
"""

import json
from collections.abc import Sequence
from urllib.parse import quote

from bezel.engine.changes.planned import Planned, digest
from bezel.engine.state.bucket import StateBucket
from bezel_base.json_documents import read_json

FOLDER = "deploys"


def begun_changes(bucket: StateBucket, project: str, stack: str, tree: str) -> tuple[Planned, ...] | None:
    """The changes of the last deploy, if that was one of this tree and did not reach its end.

    Raises:
        RestError: The bucket cannot be read.
    """
    stored = bucket.read(_name(project, stack))
    if stored is None:
        return None
    try:
        content = read_json(stored[0])
        planned = tuple(map(Planned.read, content["planned"]))
        is_this = content["tree"] == tree and not content["ended"]
    except (ValueError, KeyError, TypeError):
        return None  # of another version of bezel: then a review is needed
    return planned if is_this else None


def write(bucket: StateBucket, project: str, stack: str, tree: str, planned: Sequence[Planned], *, ended: bool) -> None:
    """Write the record. To be called under the stack's lock.

    Raises:
        RestError: The bucket cannot be written, or the lock was lost.
    """
    rows = [item.as_json() for item in planned]
    content = {"tree": tree, "changes_digest": digest(planned), "ended": ended, "planned": [] if ended else rows}
    name, data = _name(project, stack), json.dumps(content, indent=1).encode()
    stored = bucket.read(name)
    if stored is None:
        bucket.create(name, data)
    else:
        bucket.replace(name, data, stored[1])


def _name(project: str, stack: str) -> str:
    return f"{FOLDER}/{quote(project, safe='')}/{quote(stack, safe='')}.json"
