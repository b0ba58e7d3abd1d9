"""`bezel ci comment`: shows the documents of other steps in one comment of the pull request."""

import argparse
import os
from typing import Literal

from bezel.cli.ci.output import publish
from bezel.gitops.comment.comment import comment


def run(options: argparse.Namespace) -> Literal[0]:
    """Write the comment, or print it where there is no pull request; return the exit code.

    Raises:
        UserError: A document cannot be read, or the forge refuses.
    """
    publish(comment(options.documents, os.environ, pull_request=options.pull_request), options)
    return 0
