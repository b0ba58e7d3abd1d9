"""Entry point `python -m bezel_simulated_vllm ARG...`: replaces `vllm serve ARG...` in a container of localcloud."""

import sys

from bezel_base.process_end import collect_seldom, skip_last_collection


def main() -> int:
    """Run the server and return the exit status."""
    skip_last_collection()
    collect_seldom()
    from bezel_simulated_vllm.command import run  # loaded without collections

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
