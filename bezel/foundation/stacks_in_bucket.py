"""Stacks whose states a bucket holds, read as Pulumi's `gs://` backend names its objects."""

from collections.abc import Iterable
from urllib.parse import quote

from bezel.foundation.state_files import FOLDER, stack_of
from bezel.rest import ApiError, GoogleClient, endpoint
from bezel_base.errors import Problem

_SHOWN = 10


def stack_names(objects: Iterable[str]) -> list[str]:
    """`PROJECT/STACK` of each state among the names of objects, sorted."""
    files = (name.removeprefix(FOLDER) for name in objects if name.startswith(FOLDER))
    return sorted({stack for file in files if (stack := stack_of(file))})


def stacks_in(client: GoogleClient, bucket: str) -> list[str]:
    """`PROJECT/STACK` of each stack in a bucket; none where there is no such bucket.

    Raises:
        RestError: The bucket could not be listed.
    """
    url = f"{endpoint('STORAGE')}b/{quote(bucket, safe='')}/o"
    query = {"prefix": FOLDER, "fields": "items(name),nextPageToken"}
    try:
        return stack_names(str(item["name"]) for item in client.pages(url, "items", params=query))
    except ApiError as error:
        if error.status == 404:
            return []
        raise


def refusal(bucket: str, stacks: list[str]) -> Problem:
    """The problem of a destroy while a bucket holds stacks."""
    listed = ", ".join(stacks[:_SHOWN]) + (f" and {len(stacks) - _SHOWN} more" if len(stacks) > _SHOWN else "")
    return Problem(
        f"gs://{bucket}",
        listed,
        "it holds the states of these stacks: without them what they deployed could be neither changed nor destroyed, "
        "and it would cost on. Nothing was destroyed.",
        "destroy each stack and remove it (`pulumi destroy`, then `pulumi stack rm`), or move it to another backend "
        "(`pulumi stack export`, `pulumi stack import`); then run the same command again.",
    )
