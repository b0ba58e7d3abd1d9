"""Tokens that a model pays for `bezel mcp`: of the list of tools, and of answers, counted as bytes divided by four.

python -m tools.bench.mcp_tokens                       each tool of the list, and the answer to tools/list
python -m tools.bench.mcp_tokens --answers STACK       answers about a deployed stack, in each length
python -m tools.bench.mcp_tokens --bezel PATH          the same of another checkout, e.g. of the commit before

An answer is what a client may show: its text, its structured content, or both. Asks the server in a process of its own
by the official client; `--answers` needs the environment of the stack (`bezel local env`), and asks only tools that
read.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult

ROOT = Path(__file__).parents[2]
_BYTES_OF_A_TOKEN = 4
_DETAILS = ("short", "full", "json")
_SECONDS = 300.0


def asked_of(stack: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Calls of tools that read, with the arguments that make their longest usual answers."""
    about = {"stack": stack}
    names = ("plan", "cost", "config", "status", "watch", "metrics", "memory", "logs", "endpoint", "models")
    return (
        *((name, about) for name in (*names, "analyze_logs", "advise", "doctor")),
        ("logs", {**about, "limit": 1000}),
        ("logs", {**about, "source": "requests", "limit": 1000}),
        ("query", {**about, "prompt": "Say hello.", "stats": True}),
        *((name, {}) for name in ("status", "doctor", "quota", "model_files", "tpu_list", "catalog_show")),
        ("catalog_show", {"section": "prices"}),
        ("compare", {"model": "gemma-4-31b"}),
        ("explain", {"subject": "--max-num-seqs"}),
        ("secret_show", {"name": "hf-token"}),
        *((name, about) for name in ("deploy", "destroy", "restart", "weights_copy")),
    )


def tokens(text: str) -> int:
    """Tokens of a text."""
    return len(text.encode()) // _BYTES_OF_A_TOKEN


async def measure_list(client: Client) -> None:
    """Print the tokens of each tool, and of the whole answer."""
    listed = await client.list_tools()
    for tool in listed.tools:
        whole = tool.model_dump_json(by_alias=True, exclude_none=True)
        output = tool.model_dump_json(by_alias=True, exclude_none=True, include={"output_schema"})
        _print(tool.name, tokens(whole), tokens(output) if tool.output_schema else 0)
    _print("answer to tools/list", tokens(listed.model_dump_json(by_alias=True, exclude_none=True)), "")


async def measure_answers(client: Client, stack: str) -> None:
    """Print the tokens of answers: of text and structured content, in each length that the server has."""
    for name, arguments in asked_of(stack):
        cells = []
        for detail in _DETAILS:
            result = await client.call_tool(name, {**arguments, "detail": detail})
            if result.is_error:  # a server that has one length only
                result = await client.call_tool(name, arguments)
            cells.append("error" if result.is_error else _sizes(result))
        shown = ", ".join(f"{key}={value}" for key, value in arguments.items())
        _print(f"{name} {shown}"[:60], *cells)


def _sizes(result: CallToolResult) -> str:
    text = "".join(each.text for each in result.content if each.type == "text")
    whole = result.model_dump_json(by_alias=True, include={"structured_content"}) if result.structured_content else ""
    return f"{tokens(text)}+{tokens(whole)}"


def _print(name: str, *cells: object) -> None:
    sys.stdout.write(f"{name:<60}{''.join(f'{cell!s:>14}' for cell in cells)}\n")


def main() -> None:
    """Measure the list, or answers about a stack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bezel", type=Path, default=Path(sys.executable).with_name("bezel"))
    parser.add_argument("--answers", metavar="STACK")
    options = parser.parse_args()

    async def ask() -> None:
        arguments = ["mcp", "--folder", str(ROOT)]
        server = StdioServerParameters(command=str(options.bezel), args=arguments, env=dict(os.environ))
        with anyio.fail_after(_SECONDS):
            async with Client(stdio_client(server)) as client:
                if options.answers is None:
                    _print("tool", "tokens", "of its answer")
                    await measure_list(client)
                else:
                    _print("text + structured content", *_DETAILS)
                    await measure_answers(client, options.answers)

    anyio.run(ask)


if __name__ == "__main__":
    main()
