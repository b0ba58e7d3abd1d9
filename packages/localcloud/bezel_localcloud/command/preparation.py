"""Content of the project that `serve` and `start` make once it is served: enabled APIs, and buckets with files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bezel_base.errors import Problem, WrongValueError
from bezel_localcloud import clients
from bezel_localcloud.core.paths import Endpoint


@dataclass(frozen=True)
class Preparation:
    """The content of a project, as the options `--enable` and `--seed` name it.

    Attributes:
        enable: Names of APIs that are enabled beside those of a new project, as `clients.full_api_names` takes them.
        seed: Folder whose folders become buckets with their files; None for none.
    """

    enable: Sequence[str] = ()
    seed: Path | None = None

    def check(self) -> None:
        """Check the options before anything is started.

        Raises:
            WrongValueError: localcloud does not serve an API, or there is no folder of folders; the text names all.
        """
        problems: list[Problem | str] = []
        try:
            clients.full_api_names(self.enable)
        except WrongValueError as error:
            problems += error.problems
        if self.seed is not None:
            from bezel_localcloud.seed import bucket_folders  # late: httpx takes a fifth of the start

            try:
                bucket_folders(self.seed)
            except WrongValueError as error:
                problems += error.problems
        if problems:
            raise WrongValueError(*problems)

    def apply(self, endpoint: Endpoint) -> None:
        """Enable the APIs and copy the files of a running localcloud; what exists stays.

        Raises:
            SeedError: A call is refused, or localcloud does not respond.
            OSError: A file cannot be read.
        """
        if not self.enable and self.seed is None:
            return
        from bezel_localcloud import seed  # late, as above

        for api in clients.full_api_names(self.enable):
            seed.enable(endpoint, api)
        if self.seed is not None:
            seed.copy_folder(endpoint, self.seed)
