"""Runner and conversion that a vLLM chooses for each architecture that its registry lists for pooling.

    PYTHON tools/vllm/architectures/record_pooling.py FILE

PYTHON is the interpreter of any vLLM, one for CPUs as well. FILE gets two answers for each architecture: of a model
with its weights alone (`plain`), and of one with modules.json of Sentence Transformers (`modules`). Architectures whose
class this machine cannot import are left out. Imports nothing of this project.
"""

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

TABLES = ("EMBEDDING", "LATE_INTERACTION", "REWARD", "TOKEN_CLASSIFICATION", "SEQUENCE_CLASSIFICATION")
CONVERTED = (
    *("Gemma2ForTokenClassification", "Gemma4ForCausalLM", "InternLM2ForSequenceClassification", "MixtralModel"),
    *("LlamaForRewardModeling", "LlamaForSequenceClassification", "Qwen3ForCausalLM", "Qwen3ForRewardModeling"),
    *("Qwen3ForSequenceClassification", "Qwen3Model"),
)


def main() -> int:
    """Write the file."""
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    import vllm
    from vllm.config import model
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda function: function()  # noqa: SLF001 - else a process for each class
    names = [name for table in TABLES for name in getattr(registry, f"_{table}_MODELS")]
    rows: dict[str, dict[str, Any]] = {}
    for name in sorted({*names, *CONVERTED}):
        model_config = types.SimpleNamespace(
            registry=registry.ModelRegistry,
            hf_config=types.SimpleNamespace(architectures=[name]),
            **dict.fromkeys(("runner", "runner_type", "convert", "model_impl"), "auto"),
            **dict.fromkeys(("model", "revision", "code_revision", "trust_remote_code", "model_arch_config")),
        )
        row = {}
        for files, pooling in (("plain", {}), ("modules", {"pooling_type": "MEAN"})):
            model.get_pooling_config = lambda *_, config=pooling: config
            try:
                runner = model.ModelConfig._get_default_runner_type(model_config, [name])  # noqa: SLF001
                row[files] = [runner, model.ModelConfig._get_default_convert_type(model_config, [name], runner)]  # noqa: SLF001
            except ValueError:
                continue
        if len(row) == 2:  # both kinds of files
            rows[name] = row
    content = {"vllm": vllm.__version__.partition("+")[0], "architectures": rows}
    Path(sys.argv[1]).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
