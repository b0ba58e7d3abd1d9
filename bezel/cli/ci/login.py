"""`bezel ci login`: a job of a forge logs in to Google with its identity token."""

import argparse
import os
import sys
from typing import Literal

from bezel.cli.ci.output import publish
from bezel.engine.outcomes import Exit
from bezel.gitops.login import credential_file
from bezel.gitops.login.job_identity import JobTokens, Login, check_job
from bezel.gitops.login.report import LoginReport
from bezel.gitops.login.settings import LoginSettings


def run(options: argparse.Namespace) -> Literal[Exit.DONE]:
    """Log in, and leave the credentials to the later steps of the job.

    Raises:
        UserError: A setting is wrong, or one of the requests was refused.
    """
    check_job(os.environ)
    settings = LoginSettings.of(options.provider, options.account, options.project, os.environ)
    tokens = JobTokens.of(os.environ, settings.token_audience)
    session = Login(settings, os.environ, _mask).run(tokens)
    file = credential_file.write(settings, tokens, os.environ)
    handed_over = credential_file.hand_over(file, settings, os.environ)
    publish(LoginReport(settings, session.subject, session.expires, file, handed_over), options)
    return Exit.DONE


def _mask(secret: str) -> None:
    """Hide a text in the forge's log; outside of a forge nothing is printed, for no log would hide it."""
    if os.environ.get("GITHUB_ACTIONS") == "true" or os.environ.get("GITEA_ACTIONS") == "true":
        # On standard error, which runners read too: standard output may be JSON.
        sys.stderr.write(f"::add-mask::{secret}\n")
        sys.stderr.flush()
