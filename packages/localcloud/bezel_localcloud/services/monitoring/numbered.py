"""Resources of Monitoring v3 whose ids are numbers that Google chooses: names, and who changed them."""

from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.routing.router import Call

_FIRST_ID = 10_000_000_000_000_000_000  # ids have 19 or 20 digits


def new_name(call: Call, collection: str, counter: str) -> str:
    """The name of a new resource of a collection."""
    return f"projects/{PROJECT}/{collection}/{_FIRST_ID + call.cloud.store.next_number(counter)}"


def record(call: Call) -> Json:
    """A record of a change by the caller, now."""
    return {"mutateTime": timestamp(call.cloud.pace.now()), "mutatedBy": call.caller}


def by_id(name: str) -> str:
    """A name with the project's id in place of its number."""
    return name.replace(f"projects/{PROJECT_NUMBER}/", f"projects/{PROJECT}/", 1)
