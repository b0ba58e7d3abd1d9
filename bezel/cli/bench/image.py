"""`bezel bench image`: the image for the tasks of `bezel bench job`, by its digest on standard output."""

import argparse
from typing import Literal

from bezel.bench_jobs.job_image import ImageRepository, image_of_this_code
from bezel.engine.project.project import Project
from bezel_base.console import note


def run(project: Project, options: argparse.Namespace) -> Literal[0]:
    """Find or build the image of this code and print its reference.

    Raises:
        UserError: It can neither be found nor built; the text says why.
    """
    repository = ImageRepository.parse(options.repository)
    print(image_of_this_code(repository, project.folder, lambda text: note(f"  {text}")))
    return 0
