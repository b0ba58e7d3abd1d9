"""The programs in YAML of the documentation, which deploy a model with the package: as one resource, and of parts."""

from tests.support.docs.markdown import after
from tests.support.plugin.program import DOCUMENT


def _documented_program(mark: str) -> str:
    return after(DOCUMENT, mark).replace("./bezel/plugin", '"@plugin@"')


SERVICE = _documented_program("package: yaml service")
PARTS = _documented_program("package: yaml")
