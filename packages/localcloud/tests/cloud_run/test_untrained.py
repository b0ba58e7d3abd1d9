"""A test model is recognised by norms that no training has changed."""

from __future__ import annotations

import json
import struct

import pytest

from bezel_localcloud.services.cloud_run.runtime.untrained import is_untrained

ONE, OTHER = b"\x80?", b"\x90?"


def write(folder, norms):
    """Write a safetensors file of bfloat16 norms, and of one other tensor."""
    data, header = b"\x01\x02" * 4, {"w": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}
    for name, values in norms.items():
        header[name] = {
            "dtype": "BF16",
            "shape": [len(values)],
            "data_offsets": [len(data), len(data) + 2 * len(values)],
        }
        data += b"".join(values)
    text = json.dumps(header | {"__metadata__": {"format": "pt"}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_norms_of_one_value_throughout_were_never_trained(tmp_path):
    write(tmp_path, {"a.norm.weight": [ONE] * 8, "b.k_norm.weight": [OTHER] * 3})
    assert is_untrained(tmp_path)


def test_one_changed_element_is_training(tmp_path):
    write(tmp_path, {"a.norm.weight": [ONE] * 8, "b.input_layernorm.weight": [ONE, ONE, OTHER]})
    assert not is_untrained(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"\x05", b"\xff" * 40, struct.pack("<Q", 2) + b"[]"])
def test_what_cannot_be_read_counts_as_trained(tmp_path, content):
    if content is not None:
        (tmp_path / "model.safetensors").write_bytes(content)
    assert not is_untrained(tmp_path)


def test_a_model_without_norms_counts_as_trained(tmp_path):
    write(tmp_path, {})
    assert not is_untrained(tmp_path)
