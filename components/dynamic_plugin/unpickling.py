"""Reading of the pickle that stands for a provider in a resource's properties: it may name provider classes only.

A program's pickle names its provider's class by module, and that is read. One that holds code, or names anything else,
is refused before it runs, and before a module is imported for it (provider_source): the engine passes on what any user
of the machine registers at its own port (see docs/localcloud-access.md), so not every pickle that it sends is the
program's.
"""

import importlib
import io
import pickle
import sys
from typing import Any

from pulumi.dynamic import ResourceProvider

from bezel.errors import Problem
from components.base.dynamic import DeployError
from components.dynamic_plugin.provider_source import defines_provider

_REPAIR = (
    "put the provider's class into a module of the program, where `__main__.py` imports it, and let it hold plain "
    "values only. If the program has no such resource, another user of this machine sent it: stop the deploy."
)


class ProviderError(DeployError):
    """A pickle that is no provider of a module."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[ResourceProvider]:
        # An import runs the module, and getattr on a loaded one may run its __getattr__.
        if module in sys.modules or defines_provider(module, name):
            found = vars(importlib.import_module(module)).get(name)
            if isinstance(found, type) and issubclass(found, ResourceProvider) and found.__module__ == module:
                return found
        consequence = "expected the class of a provider; another name may run code."
        raise ProviderError(Problem("__provider", f"{module}.{name}", consequence, _REPAIR))


def load_provider(data: bytes) -> Any:
    """Return the provider of a pickle.

    Args:
        data: What `pulumi.dynamic` serialized.

    Raises:
        ProviderError: It names anything else than classes of providers, or is no pickle.
    """
    try:
        provider = _Unpickler(io.BytesIO(data)).load()
    except ProviderError:
        raise
    except Exception as error:  # noqa: BLE001 - a broken pickle ends in errors of any kind
        consequence = f"it cannot be read as a provider: {type(error).__name__}: {error}."
        raise ProviderError(Problem("__provider", None, consequence, _REPAIR)) from None
    if not isinstance(provider, ResourceProvider):
        raise ProviderError(Problem("__provider", type(provider).__name__, "expected a provider.", _REPAIR))
    return provider
