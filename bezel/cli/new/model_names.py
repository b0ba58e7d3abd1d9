"""Models that `bezel new` may name: checkpoints of the catalogue, and one of a hub, a folder or a bucket beside them.

Such a model is read once, its row is shown, and the project that is made gets it as its `catalog.toml`. Leaves reading
to bezel.model_sources, and what a stack sets for it to `choice`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bezel.model_sources.new_row import NewRow, catalogued_id, is_place, read_new_row
from bezel.operations.changes.plan import plain_all
from bezel.operations.weights.hub_token import TOKEN
from bezel.rest import RestError
from bezel_base.console import note
from bezel_base.errors import Problem, UserError, WrongValueError
from bezel_base.terminal.screen import show_text
from bezel_base.text.printable import printable
from bezel_base.text.shell import shell_word
from bezel_catalog import models
from bezel_catalog.models import using_models
from bezel_catalog.project_models import FILE

_OPTION = "--model"
_PUBLIC = "Gemma 4 on vLLM"  # how the template describes a project
_STEP = re.compile(r"then `[^`]+ weights copy [^`]+`")


class ModelNames:
    """The models that a new project may have, each read at most once.

    Args:
        environ: The environment; HF_ENDPOINT in it replaces the public hub, HF_TOKEN opens gated models.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._rows: dict[str, NewRow] = {}

    def id_of(self, name: str) -> str:
        """The id of the model that a name means; a name that can mean none stays as it is.

        Raises:
            WrongValueError: It means a model that vLLM cannot load, or that may not be read.
            RestError: The hub or the bucket does not respond.
        """
        if not name or name in models():
            return name
        if same := catalogued_id(name):
            return same
        return self.read(name).row.id if is_place(name) else name

    def read(self, place: str, revision: str = "") -> NewRow:
        """Read a model, and show its row; at a second call the same one.

        Args:
            place: `OWNER/NAME[@REVISION]` of a hub, a folder, or `gs://BUCKET/FOLDER`.
            revision: Branch, tag or commit of a repository; "" for that of the name, or `main`.

        Raises:
            WrongValueError: There is no such model, it may not be read, or vLLM could not load it.
            RestError: The hub or the bucket does not respond.
        """
        if place in self._rows:
            return self._rows[place]
        try:
            new = read_new_row(place, revision=revision, environ=self._environ, token=self._token, show=note)
        except RestError:
            raise
        except UserError as error:
            problems = (_of_option(each) if isinstance(each, Problem) else each for each in error.problems)
            raise WrongValueError(*problems, title=error.title) from None
        self._rows[place] = new
        show_text(f"{FILE} of the project has this row:\n")
        for line in new.catalogue_text().splitlines():
            show_text(f"    {printable(line)}".rstrip())
        show_text("")
        for text in plain_all(new.notes):
            show_text(f"note: {text}")
        return new

    @contextmanager
    def using(self) -> Iterator[None]:
        """While the block runs, look-ups know the models that were read beside those of the catalogue."""
        with using_models({each.row.id: each.model for each in self._rows.values()}):
            yield

    def row_of(self, model: str) -> NewRow | None:
        """The row that a project with this model needs, None for a checkpoint of the catalogue."""
        return next((each for each in self._rows.values() if each.row.id == model), None)

    def _token(self) -> str:
        return self._environ.get(TOKEN, "").strip()


def with_row(files: Mapping[str, str], new: NewRow, place: str) -> dict[str, str]:
    """The files of a project whose model is not of the catalogue.

    Args:
        files: Path -> text, as for a checkpoint of the catalogue.
        new: The model.
        place: Where its files are.
    """
    row, changed = new.row, dict(files)
    for path in ("Pulumi.yaml", "README.md"):
        changed[path] = changed[path].replace(_PUBLIC, f"{row.id} on vLLM")
    if not row.hub_id:
        folder = f"gs://my-project-models/{row.id}/"
        step = (
            f"`{row.source}` holds them"
            if row.source.startswith("gs://")
            else f"then `gcloud storage cp --recursive {shell_word(place.rstrip('/') + '/*')} {shell_word(folder)}`"
        )
        changed["README.md"] = _STEP.sub(lambda _: step, changed["README.md"])
    return changed | {FILE: new.catalogue_text()}


def _of_option(problem: Problem) -> Problem:
    """A problem of a model's name, by the option that the user gave."""
    if problem.key != "MODEL":
        return problem
    return Problem(_OPTION, problem.value, problem.consequence, problem.repair)
