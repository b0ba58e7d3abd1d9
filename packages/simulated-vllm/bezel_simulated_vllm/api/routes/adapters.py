"""POST /v1/load_lora_adapter and /v1/unload_lora_adapter, which are served where callers may change the adapters.

Source: vLLM 0.32.0, entrypoints/serve/lora (routes and bodies); each text was observed on a real engine.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic_core import ValidationError
from starlette.responses import Response
from starlette.routing import Route

from bezel_simulated_vllm.api.bodies import content_of
from bezel_simulated_vllm.api.errors import ApiError, shape_error
from bezel_simulated_vllm.configuration.adapters import LoRAModulePath
from bezel_simulated_vllm.configuration.logs import log

if TYPE_CHECKING:
    from starlette.requests import Request

    from bezel_simulated_vllm.configuration.adapters import LoadedAdapters


class _AdapterBody(BaseModel):
    model_config = ConfigDict(extra="ignore")


class LoadBody(_AdapterBody):
    """An adapter to load: its name for callers, and its folder."""

    lora_name: str
    lora_path: str
    load_inplace: bool = False
    is_3d_lora_weight: bool = False


class UnloadBody(_AdapterBody):
    """An adapter to remove."""

    lora_name: str


BodyT = TypeVar("BodyT", bound=_AdapterBody)


def adapter_routes(adapters: LoadedAdapters | None) -> list[Route]:
    """Return the routes of this module; none where callers may not change the adapters."""
    if adapters is None:
        return []
    lock = asyncio.Lock()

    async def load(request: Request) -> Response:
        body = await _body(LoadBody, request)
        module = LoRAModulePath(body.lora_name, body.lora_path, is_3d_lora_weight=body.is_3d_lora_weight)
        # In a thread, since it may ask a hub while the server answers others; one at a time, as of one name.
        async with lock:
            _raise(await asyncio.to_thread(adapters.load, module, in_place=body.load_inplace))
        log("adapter", name=module.name, path=module.path)
        return Response(f"Success: LoRA adapter '{module.name}' added successfully.")

    async def unload(request: Request) -> Response:
        body = await _body(UnloadBody, request)
        _raise(adapters.unload(body.lora_name))
        return Response(f"Success: LoRA adapter '{body.lora_name}' removed successfully.")

    return [
        Route("/v1/load_lora_adapter", load, methods=["POST"]),
        Route("/v1/unload_lora_adapter", unload, methods=["POST"]),
    ]


async def _body(kind: type[BodyT], request: Request) -> BodyT:
    content = content_of(request.headers.get("content-type", ""), await request.body())
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise shape_error([{**row, "loc": ("body", *row["loc"])} for row in error.errors(include_url=False)]) from None


def _raise(refusal: tuple[int, str, str] | None) -> None:
    if refusal is not None:
        status, kind, text = refusal
        raise ApiError(text, kind, None, status)
