"""Image of a found server -> `vllm_version` and `image` of a stack file. Pure.

Refuses an image without vLLM: nothing of a stack file could be made of its arguments.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel.conversion.inputs.found_server import Remark, remark
from bezel.conversion.inputs.server_words import starts_server
from bezel.conversion.inputs.variable_expansion import OPEN
from bezel.planner.base.settings import Settings
from bezel_base.errors import Problem, UserError
from bezel_catalog import vllm_versions

if TYPE_CHECKING:
    from bezel.conversion.inputs.found_server import FoundServer

_NAME = re.compile(
    r"(?:(?P<host>[^/:@]+(?:\.[^/:@]+)+(?::\d+)?|localhost(?::\d+)?)/)?(?P<path>[^:@]+)(?::(?P<tag>[^@]+))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+)")
_OWN = ("vllm/vllm-openai", "vllm/vllm-tpu")
TPU_IMAGE = "vllm/vllm-tpu"
DEFAULT = str(Settings.model_fields["vllm_version"].default)


def image_settings(server: FoundServer) -> tuple[dict[str, Any], str, list[Remark]]:
    """Settings of the image, the release whose options the arguments are read by, and what is to be known.

    Raises:
        UserError: The image does not run vLLM's server.
    """
    if not server.image:
        note = remark("assumed", "bezel:vllm_version", DEFAULT, "the input names no image.")
        return {}, DEFAULT, [note]
    if "vllm" not in server.image.lower() and not starts_server(server.tokens):
        consequence = "it does not run vLLM's server, and a stack deploys no other."
        repair = "name a service with the image vllm/vllm-openai, or with a command that begins with `vllm serve`."
        raise UserError(Problem("image", server.image, consequence, repair))
    match = _NAME.fullmatch(server.image)
    if match is None or OPEN.search(server.image):
        note = remark("assumed", "image", server.image, f"its name cannot be read; vLLM {DEFAULT} is deployed.")
        return {}, DEFAULT, [note]
    tag, digest = match["tag"] or "", match["digest"] or ""
    path = next((image for image in _OWN if f"/{match['path']}".endswith(f"/{image}")), None)
    if path is None:
        return _of_another_image(server.image, match["host"] or "", match["path"], tag, digest)
    image = {"digest": digest} if digest else {}
    release = _RELEASE.fullmatch(tag)
    if release and release[1] in vllm_versions():
        settings: dict[str, Any] = {} if release[1] == DEFAULT else {"vllm_version": release[1]}
        return settings | ({"image": image} if image else {}), release[1], []
    if release:
        reason = f"the options of this release are not recorded: vLLM {DEFAULT} is deployed, and checks the arguments."
        repair = "to keep it, record them: `bezel catalog record-release`."
        return {}, DEFAULT, [remark("changes", "image", tag, reason, repair)]
    if not digest:
        reason = f"it names another build each time: vLLM {DEFAULT} is deployed." if tag else "it has no tag."
        return {}, DEFAULT, [remark("assumed", "bezel:vllm_version", DEFAULT, f"the image is {server.image}: {reason}")]
    reason = f"the image is pinned by its digest, which does not say its release: {DEFAULT} checks the arguments."
    return {"image": image}, DEFAULT, [remark("assumed", "bezel:vllm_version", DEFAULT, reason)]


def _of_another_image(
    name: str, host: str, path: str, tag: str, digest: str
) -> tuple[dict[str, Any], str, list[Remark]]:
    image = {"repository": path, "tag": tag or "latest", "options": DEFAULT}
    if host:
        image["registry"] = host
    if digest:
        image["digest"] = digest
    reason = f"{name} is not one of vLLM's own images: its vLLM is taken to have the options of {DEFAULT}."
    repair = "if it has others, record them: `bezel catalog record-release`."
    return {"image": image}, DEFAULT, [remark("assumed", "bezel:image.options", DEFAULT, reason, repair)]
