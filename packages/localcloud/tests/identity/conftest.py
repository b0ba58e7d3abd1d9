import pytest

from localcloud_support import federation
from localcloud_support.issuer import Issuer


@pytest.fixture
def issuer(project):
    """An issuer whose tokens a provider of the project exchanges, on the project's clock."""
    with Issuer(clock=lambda: project.clock.time) as new_issuer:
        federation.prepare(project, new_issuer)
        yield new_issuer
