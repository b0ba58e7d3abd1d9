"""Weights that were never trained: a test model's, whose output nothing predicts.

Recognised by the model's norms: training changes them, and in a new model each holds one value throughout. Reads
safetensors files; leaves out other formats, whose models count as trained.
"""

import json
import struct
from pathlib import Path

_HEADER = 8  # bytes of the header's length
_LONGEST = 100 << 20


def is_untrained(model_dir: Path) -> bool:
    """Whether every norm of a model has one value throughout; False where there is none to read.

    Args:
        model_dir: the model's folder.
    """
    has_norm = False
    for file in sorted(model_dir.glob("*.safetensors")):
        for norm in _norms(file):
            if norm[0] * len(norm) != b"".join(norm):
                return False
            has_norm = True
    return has_norm


def _norms(file: Path) -> list[list[bytes]]:
    """Return the elements of the norms of a file; none where it is no safetensors file."""
    norms = []
    try:
        with file.open("rb") as stream:
            length = struct.unpack("<Q", stream.read(_HEADER))[0]
            tensors = json.loads(stream.read(min(length, _LONGEST)))
            for name, tensor in tensors.items():
                if not name.endswith("norm.weight"):
                    continue
                begin, end = tensor["data_offsets"]
                size = (end - begin) // max(1, tensor["shape"][0])
                stream.seek(_HEADER + length + begin)
                data = stream.read(end - begin)
                norms.append([data[at : at + size] for at in range(0, len(data), max(1, size))])
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error):
        return []
    return [norm for norm in norms if norm]
