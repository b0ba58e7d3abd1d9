"""Simulated server of a recorded vLLM release, started as `simulated-vllm ARG...`.

Owns everything behind the container's entrypoint: the argument parser, the start with its refusals and its log, the
engine (batching, KV cache, timing by a roofline of the accelerator) and the HTTP responses. It has parameters of its
own (`hardware.toml`) and takes none of the planner's: a check that shares its parameters with the checked code proves
nothing. Leaves out real weights (text is generated from a hash), images and audio, LoRA, pooling models.
"""
