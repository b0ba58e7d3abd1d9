"""Methods of long-running operations, the same for every API: get, list, cancel, delete.

Leaves out `wait`, which only Cloud Run and Compute Engine have, and Compute Engine's own shape of operations.
"""

from bezel_localcloud.core.errors import unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Api, Call


def serve_operations(api: Api, path: str, parent: str, methods: str, *, needs: str = "", of: str = "") -> None:
    """Register methods of the operations below a parent.

    Args:
        api: Their API.
        path: Path of the parent, e.g. "/tpu/v2/projects/{project:id}/locations/{location:id}".
        parent: Name of the parent, e.g. "projects/{project}/locations/{location}"; "" for none.
        methods: Those that the API has, of get, list, cancel and delete, separated by blanks.
        needs: Prefix of the permissions, such as "run.operations"; "" where none is needed.
        of: Part of the metadata's type that marks the operations of this API where others share their parent.
    """
    collection = f"{parent}/operations/".lstrip("/")
    one = f"{path}/operations/{{operation:id}}"

    def get(call: Call) -> Json:
        """The current state of an operation."""
        call.cloud.machines.advance()
        return call.cloud.operations.get(call.name(collection + "{operation}"))

    def list_operations(call: Call) -> Json:
        """The operations below the parent, without a filter."""
        if call.query("filter"):
            raise unserved_error(f"the filter {call.query('filter')!r}")
        call.cloud.machines.advance()
        names = call.cloud.store.operations(call.name(collection))
        bodies = [(name, call.cloud.operations.get(name)) for name in names]
        return call.page([(n, body) for n, body in bodies if of in body["metadata"].get("@type", "")], "operations")

    def cancel(call: Call) -> Json:
        """Accept a wish to cancel, which succeeds for no operation here: Google does not promise it either."""
        get(call)
        return {}

    def delete(call: Call) -> Json:
        """Forget an operation; its work continues."""
        call.cloud.store.delete_operation(get(call)["name"])
        return {}

    handlers = {
        "get": ("GET", one, get, ""),
        "list": ("GET", f"{path}/operations", list_operations, "filter pageSize pageToken"),
        "cancel": ("POST", f"{one}:cancel", cancel, ""),
        "delete": ("DELETE", one, delete, ""),
    }
    for name in methods.split():
        verb, route, handler, query = handlers[name]
        api.route(verb, route, needs=f"{needs}.{name}" if needs else "", query=query)(handler)
