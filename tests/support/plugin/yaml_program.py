"""The program in YAML of the documentation, which deploys a model with the package."""

from tests.support.docs.markdown import after
from tests.support.plugin.program import DOCUMENT

PROGRAM = after(DOCUMENT, "package: yaml").replace("./bezel/plugin", '"@plugin@"')
