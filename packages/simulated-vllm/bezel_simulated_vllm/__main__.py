"""Entry point `python -m bezel_simulated_vllm ARG...`: replaces `vllm serve ARG...` in a container of localcloud."""

import sys

from bezel_simulated_vllm.command import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
