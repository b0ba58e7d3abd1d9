"""A simulated vLLM 0.32.0 server, started as `python -m bezel.simulated_vllm ARG...`.

It owns everything behind the container's entrypoint: the argument parser, the start with its refusals and its log,
the engine (batching, KV cache, timing by a roofline of the accelerator) and the HTTP answers. It has parameters of its
own (`hardware.toml`) and takes none of the planner's, because a check that shares its figures with what it checks
proves nothing. What it leaves out: real weights (text is made up), images and audio, LoRA, pooling models.
"""
