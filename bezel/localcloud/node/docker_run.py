"""Options of `docker run`, and the failure of a command. Shapes only."""

from dataclasses import dataclass


class RefusedError(Exception):
    """A failed command; the text is its output."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class RunOptions:
    """Options of `docker run` beside the image and its command."""

    name: str
    restarts: int
    host_network: bool
    privileged: bool
    gpus: bool
    entrypoint: str
    environment: dict[str, str]
    volumes: dict[str, str]
