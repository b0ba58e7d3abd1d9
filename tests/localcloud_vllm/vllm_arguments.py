"""The arguments of the L4 stack, where the repository is, and a port that nobody uses."""

import socket
from pathlib import Path

ROOT = Path(__file__).parents[2]
L4_QAT = (
    "--served-model-name=gemma",
    "--max-model-len=32768",
    "--gpu-memory-utilization=0.95",
    "--max-num-seqs=8",
    "--max-num-batched-tokens=4096",
    "--kv-cache-dtype=fp8",
)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
