"""Error messages about a folder that holds no complete model.

Leaves out the definition of a complete model (`bezel.weights.layout`) and the listing of the folder (`model_files`).
"""

import shlex


def copy_command(source: str, location: str, stack: str) -> str:
    """Write the command that copies a model into a bucket.

    Args:
        source: Id on the Hugging Face hub, e.g. `google/gemma-4-12b-it`; "" for files that only the user has.
        location: `gs://BUCKET/PATH`.
        stack: The stack that serves the model.
    """
    if not source:
        return f"gcloud storage cp --recursive FOLDER_WITH_YOUR_COPY/* {shlex.quote(location + '/')}"
    return f".venv/bin/bezel weights copy {shlex.quote(stack)} --from {shlex.quote(f'hf:{source}')}"


def not_a_model(location: str, command: str, problems: list[str]) -> str:
    """Write the message for a folder that vLLM could not load: the problem, its consequence, its repair."""
    return (
        f"{location} does not hold a whole model: {'; '.join(problems)}.\n"
        "  Consequence: vLLM would end while it starts, and Cloud Run would report no more than that nothing listens on"
        " the port, after the GPU was paid for.\n"
        "  Repair: copy the model there, then run the same command again:\n"
        f"    {command}"
    )


def no_bucket(bucket: str, location: str, command: str) -> str:
    """Write the message for a bucket that neither exists nor is made by the stack."""
    return (
        f"Bucket {bucket} does not exist, so there is no model at {location}.\n"
        "  Consequence: Cloud Run could not mount the weights, and the service would not start.\n"
        "  Repair: correct the bucket's name, or let the stack make it (weights: {create: true}); copy the model:\n"
        f"    {command}"
    )


def unreachable(location: str, why: str) -> str:
    """Write the message for a folder that could not be listed; whether it holds a model stays unknown."""
    return (
        f"{location} could not be listed: {why.rstrip('.')}.\n"
        "  Consequence: nobody knows whether it holds a model; without one vLLM ends while it starts.\n"
        "  Repair: make Cloud Storage reachable with credentials that may list the bucket"
        " (roles/storage.objectViewer), then run the same command again."
    )
