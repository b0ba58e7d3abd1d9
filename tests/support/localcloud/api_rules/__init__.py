"""Rules of Google's APIs that localcloud follows beyond single fields: tests and sources, one module a product.

A row: the rule; its tests (file below packages/localcloud/tests or tests/localcloud, without `test_` and `.py`, then
the function); the document, the place in it, and words of that place. A rule that no discovery document states names
its source instead of a document.
"""

from tests.support.localcloud.api_rules import (
    balancers,
    billing,
    cloud_run,
    iam,
    machines,
    observability,
    secret_manager,
    storage,
)

RULES = [
    rule
    for product in (cloud_run, secret_manager, storage, iam, observability, billing, machines, balancers)
    for rule in product.RULES
]
