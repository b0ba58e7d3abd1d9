"""Reading of the pickle that stands for a provider in a resource's properties: it may name provider classes only.

A program's pickle names its provider's class by module, and that is read. One that holds code, or names anything else,
is refused before it runs, and before a module is imported for it (provider_source): the engine passes on what any user
of the machine registers at its own port (see docs/localcloud-access.md), so not every pickle that it sends is the
program's.
"""

import functools
import importlib
import inspect
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any, TypeGuard

from pulumi.dynamic import ResourceProvider

from bezel_base.errors import Problem
from bezel_components.base.dynamic import DeployError
from bezel_components.dynamic_plugin.provider_source import defines_provider

_REPAIR = (
    "put the provider's class into a module of the program, where `__main__.py` imports it, and let it hold plain "
    "values only. If the program has no such resource, another user of this machine sent it: stop the deploy."
)


_SMOKE = ("smoke.base", "smoke.benchmark", "smoke.health")


class ProviderError(DeployError):
    """A pickle that is no provider of a module."""


# What protocols 4 and 5 write for a provider and plain values: no call, and no instance of another class.
_OPERATIONS = (
    *(pickle.PROTO, pickle.FRAME, pickle.MEMOIZE, pickle.BINGET, pickle.LONG_BINGET, pickle.MARK, pickle.STOP),
    *(pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BINFLOAT),
    *(pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1, pickle.LONG4),
    *(pickle.SHORT_BINUNICODE, pickle.BINUNICODE, pickle.BINUNICODE8),
    *(pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.BINBYTES8, pickle.BYTEARRAY8),
    *(pickle.EMPTY_TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.TUPLE, pickle.FROZENSET),
    *(pickle.EMPTY_LIST, pickle.APPEND, pickle.APPENDS, pickle.EMPTY_SET, pickle.ADDITEMS),
    *(pickle.EMPTY_DICT, pickle.SETITEM, pickle.SETITEMS, pickle.STACK_GLOBAL, pickle.NEWOBJ, pickle.BUILD),
)


class _Dispatch(dict[int, Callable[[Any], None]]):
    """Operation -> what carries it out; every other operation is refused."""

    def __missing__(self, code: int) -> Callable[[Any], None]:
        consequence = "a pickle of a provider has no such operation; it may run code."
        raise ProviderError(Problem("__provider", f"operation {bytes([code])!r}", consequence, _REPAIR))


# The SDK writes with its counterpart. The one in C lets no operation be refused.
_Base = pickle._Unpickler  # noqa: SLF001
_CARRIED_OUT: dict[int, Callable[[Any], None]] = _Base.dispatch


class _Unpickler(_Base):
    stack: list[Any]
    metastack: list[list[Any]]
    dispatch = _Dispatch({code[0]: _CARRIED_OUT[code[0]] for code in _OPERATIONS})

    def instantiate(self) -> None:
        values, kind = self.stack.pop(), self.stack.pop()
        if not _is_provider_class(kind) or type(values) is not tuple or values:
            raise _refusal("an instance", kind, "expected one of a provider's class, without arguments.")
        self.stack.append(kind.__new__(kind))

    def set_values(self) -> None:
        values, provider = self.stack.pop(), self.stack[-1]
        if not isinstance(provider, ResourceProvider):
            raise _refusal("values", provider, "expected a provider's; a class would change for every resource.")
        if type(values) is not dict or not all(type(name) is str for name in values):
            raise _refusal("values", values, "expected name -> value, as an instance has them.")
        if taken := [name for name in values if _is_own_code(type(provider), name)]:
            raise _refusal("values", provider, f"{', '.join(taken)} would replace code of the provider's class.")
        if (set_state := getattr(type(provider), "__setstate__", None)) is not None:
            set_state(provider, values)
        else:
            vars(provider).update(values)

    def fill(self, kind: type, code: bytes) -> None:
        # Of a list, set or dict alone: the methods of another object are code.
        above = self.stack if code in {pickle.APPEND, pickle.SETITEM} else self.metastack[-1] if self.metastack else []
        last = {pickle.APPEND: -2, pickle.SETITEM: -3}.get(code, -1)
        if len(above) < -last or type(above[last]) is not kind:
            raise _refusal("an item", None, f"expected it in a {kind.__name__}.")
        _CARRIED_OUT[code[0]](self)

    dispatch[pickle.NEWOBJ[0]] = instantiate
    dispatch[pickle.BUILD[0]] = set_values
    for _code, _kind in ((pickle.APPEND, list), (pickle.APPENDS, list), (pickle.ADDITEMS, set), (pickle.SETITEM, dict),
                         (pickle.SETITEMS, dict)):  # fmt: skip
        dispatch[_code[0]] = functools.partial(fill, kind=_kind, code=_code)

    def find_class(self, module: str, name: str) -> type[ResourceProvider]:
        # A program's own module of such a name comes first: its folder may be called `components` too.
        for one in filter(None, (module, _name_now(module))):
            # An import runs the module, and getattr on a loaded one may run its __getattr__.
            if one in sys.modules or defines_provider(one, name):
                candidate = vars(importlib.import_module(one)).get(name)
                if _is_provider_class(candidate) and candidate.__module__ == one:
                    return candidate
        consequence = "expected the class of a provider; another name may run code."
        raise ProviderError(Problem("__provider", f"{module}.{name}", consequence, _REPAIR))


def _name_now(module: str) -> str | None:
    """The name of a module of ours that states from before 0.1.0 call otherwise; None for any other."""
    room = module.partition(".")[0]
    is_ours = module.startswith(("components.providers.", "bootstrap.providers.")) or module in _SMOKE
    return f"bezel_{room}.{module.partition('.')[2]}" if is_ours else None


def _is_provider_class(candidate: object) -> TypeGuard[type[ResourceProvider]]:
    return isinstance(candidate, type) and issubclass(candidate, ResourceProvider)


def _is_own_code(kind: type, name: str) -> bool:
    """Whether a value of this name would stand for a method or property, or for what Python itself looks up."""
    attribute = inspect.getattr_static(kind, name, None)
    is_special = name.startswith("__") and name.endswith("__")
    return (
        is_special or callable(attribute) or any(hasattr(type(attribute), method) for method in ("__get__", "__set__"))
    )


def _refusal(what: str, value: object, consequence: str) -> ProviderError:
    kind = value.__qualname__ if isinstance(value, type) else None if value is None else type(value).__name__
    return ProviderError(Problem("__provider", f"{what} of {kind}" if kind else what, consequence, _REPAIR))


def load_provider(data: bytes) -> Any:
    """Return the provider of a pickle.

    Args:
        data: What `pulumi.dynamic` serialized.

    Raises:
        ProviderError: It names anything else than classes of providers, sets more than values of an instance, or is no
            pickle.
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
