"""Model that the caller describes: a name with parameters, active ones, weights and cache, for the roofline.

    llama-3.1-8b=8.03B,8.03B,16.1GB,131kB/token

The parameters, those that one token uses (all of a dense model), the bytes of the weights as served, and the bytes of
the KV cache of one token as served, in the layers that keep the whole context. Leaves out the catalogue's own models
(labels.py).
"""

import re
from dataclasses import dataclass

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_NUMBER = r"\d+(?:\.\d+)?"
_STATED = re.compile(
    r"(?P<name>[a-z0-9][\w./-]*)\s*=\s*"
    rf"(?P<parameters>{_NUMBER})\s*(?P<parameters_unit>[mbt])\s*,\s*"
    rf"(?P<active>{_NUMBER})\s*(?P<active_unit>[mbt])\s*,\s*"
    rf"(?P<weights>{_NUMBER})\s*(?P<weights_unit>[mgt]i?)b\s*,\s*"
    rf"(?P<cache>{_NUMBER})\s*(?P<cache_unit>(?:[km]i?)?)b/tok(?:en)?(?![a-z])"
)
EXAMPLE = "llama-3.1-8b=8.03B,8.03B,16.1GB,131kB/token"


@dataclass(frozen=True, slots=True)
class StatedModel:
    """A model as described: counts, and bytes."""

    id: str
    parameters: float
    active_parameters: float
    weight_bytes: float
    cache_bytes_per_token: float

    @property
    def read_bytes(self) -> float:
        """Return the fewest weight bytes that a step reads: all tokens may choose the same experts."""
        return self.weight_bytes * self.active_parameters / self.parameters


def stated_model(text: str) -> StatedModel | None:
    """Return the model that a text describes; None where it describes none completely, or more active than all."""
    match = _STATED.search(text.lower())
    if match is None:
        return None
    parameters, active, weights, cache = (
        float(match[name]) * (_BINARY | _PREFIXES)[match[f"{name}_unit"]]
        for name in ("parameters", "active", "weights", "cache")
    )
    if not (0 < active <= parameters and weights and cache):
        return None
    return StatedModel(match["name"], parameters, active, weights, cache)


def without_stated_model(text: str) -> str:
    """Return a text without the description, so that no size in it names a model of the catalogue."""
    return _STATED.sub(" ", text.lower()) if stated_model(text) else text


def names_model(model: str, stated: StatedModel) -> bool:
    """Whether a name in a file is that of the described model, e.g. "meta-llama/Llama-3.1-8B-Instruct"."""
    return _plain(stated.id) in _plain(model)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())
