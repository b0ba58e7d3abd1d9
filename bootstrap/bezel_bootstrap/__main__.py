"""The program: settings become the foundation of a project, whose names are the outputs."""

import sys

import pulumi

from bezel.foundation.settings import checked_settings
from bezel_base.errors import UserError
from bezel_bootstrap import config
from bezel_bootstrap.deploy import deploy

try:
    project = config.google_project()
    settings = checked_settings(config.values(), project)
    for name, value in deploy(settings, str(project)).items():
        pulumi.export(name, value)
except (UserError, pulumi.RunError) as error:
    pulumi.log.error(str(error))
    sys.exit(32)  # for the engine: the error has been shown, so it adds nothing
