"""The arguments of the L4 stack."""

L4_QAT = (
    "--served-model-name=gemma",
    "--max-model-len=32768",
    "--gpu-memory-utilization=0.95",
    "--max-num-seqs=8",
    "--max-num-batched-tokens=4096",
    "--kv-cache-dtype=fp8",
)
