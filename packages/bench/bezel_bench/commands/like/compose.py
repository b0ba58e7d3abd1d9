"""Options of other clients that become several options here, or depend on each other. Pure."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_SLOS = {"e2el": "e2e", "time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2e"}
_ENDPOINTS = {
    "/v1/chat/completions": "chat", "/v1/completions": "completions", "/v1/embeddings": "embeddings",
    "/v1/rerank": "rerank", "openai": "completions", "vllm": "completions", "openai-chat": "chat",
    "openai-embeddings": "embeddings", "vllm-rerank": "rerank", "chat": "chat", "completions": "completions",
    "embeddings": "embeddings", "rankings": "rerank", "chat_completions": "chat", "text_completions": "completions",
}  # fmt: skip
_KEY = "authorization"
Values = Mapping[str, list[str]]


@dataclass
class Command:
    """A command here.

    Attributes:
        name: The command.
        options: Its options by name, with their values; None for an option without one.
        notes: What it does not have, or has by default.
    """

    name: str = "run"
    options: dict[str, list[str | None]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def set(self, name: str, *values: str | None) -> None:
        """Set an option."""
        self.options[name] = [*values]


def compose(client: str, values: Values, command: Command) -> None:
    """Add the options that a client's composed ones become."""
    _COMPOSERS[client](values, command)


def _last(values: Values, *names: str) -> str | None:
    return next((values[name][-1] for name in names if values.get(name)), None)


def _of_vllm(values: Values, command: Command) -> None:
    if "--url" not in command.options:
        host, port = _last(values, "--host") or "127.0.0.1", _last(values, "--port") or "8000"
        command.set("--url", f"http://{host}:{port}")
    backend = _last(values, "--endpoint") or _last(values, "--backend") or "openai"
    _set_endpoint(backend, command)
    requests = _last(values, "--num-prompts") or "1000"
    command.set("--requests", requests)
    rate, most = _last(values, "--request-rate") or "inf", _last(values, "--max-concurrency")
    if rate != "inf":
        command.set("--rate", rate)
        if most:
            command.set("--max-concurrency", most)
        if (shape := _last(values, "--burstiness")) not in (None, "1", "1.0"):
            command.set("--arrivals", "burst")
            command.set("--burstiness", shape)
    elif "--users" not in command.options:
        command.set("--users", most or requests)
    prefix = _last(values, "--random-prefix-len", "--prefix-repetition-prefix-len")
    _set_prefix(prefix, _last(values, "--prefix-repetition-suffix-len"), command)
    _set_dataset(values, command)
    body = {name: _number(value) for name in _SAMPLING if (value := _last(values, f"--{name.replace('_', '-')}"))}
    body |= {} if "--ignore-eos" in values else {"ignore_eos": False}
    _set_body(body, _last(values, "--extra-body"), command)
    _set_pairs(values, command, sign="=")
    if "--save-result" in values:
        folder, name = _last(values, "--result-dir"), _last(values, "--result-filename") or "result.json"
        command.set("--out", f"{folder.rstrip('/')}/{name}" if folder else name)


_SAMPLING = (
    *("top_p", "top_k", "min_p", "temperature", "frequency_penalty", "presence_penalty", "repetition_penalty"),
    "logprobs",
)


def _set_dataset(values: Values, command: Command) -> None:
    name, path = _last(values, "--dataset-name") or "random", _last(values, "--dataset-path")
    if path is None:
        if name not in ("random", "prefix_repetition"):
            command.notes.append(f"--dataset-name {name}: name its file (--file, --trace) or data set (--dataset)")
    elif name == "hf":
        split = _last(values, "--hf-split")
        command.set("--dataset", f"{path}:{split}" if split else path)
    else:
        command.set("--trace" if "trace" in name else "--file", path)


def _of_guidellm(values: Values, command: Command) -> None:
    _set_endpoint(_last(values, "--backend request_format", "--request-type"), command)
    kind = _last(values, "--profile kind", "--rate-type") or "sweep"
    rate = _last(values, "--profile rate", "--profile streams", "--rate")
    most = _last(values, "--profile max_concurrency")
    if kind in ("sweep", "knee"):
        command.name = "rates"
        if rate:
            command.set("--steps", rate)
    elif kind == "goodput":
        command.name = "goodput"
        command.notes.append("--profile kind=goodput: name the limits, e.g. --slo ttft_p99=500ms")
    elif kind in ("constant", "poisson", "async"):
        command.set("--rate", rate or "1")
        command.set("--arrivals", "poisson" if kind == "poisson" else "constant")
        if most:
            command.set("--max-concurrency", most)
    elif kind == "replay":
        command.notes.append("--profile kind=replay: name the trace by --trace")
    else:
        command.set("--users", "1" if kind == "synchronous" else rate or most or "512")
    kinds = values.get("--constraint kind", [])
    amounts = [
        value for name in ("seconds", "count", "value", "rate") for value in values.get(f"--constraint {name}", [])
    ]
    for constraint, amount in zip(kinds, amounts, strict=False):
        if option := _CONSTRAINTS.get(constraint):
            command.set(option, f"{float(amount) * 100:g}" if option == "--max-failed" else amount)
        else:
            command.notes.append(f"--constraint kind={constraint}: no counterpart")
    for what in ("input", "output"):
        word = "prompt" if what == "input" else what
        _set_lengths(
            what, command.options.get(f"--{what}-tokens"), _last(values, f"--data {word}_tokens_stdev"), command
        )


_CONSTRAINTS = {
    "max_duration": "--seconds", "max_requests": "--requests", "max_number": "--requests",
    "max_error_rate": "--max-failed", "max_global_error_rate": "--max-failed",
}  # fmt: skip


def _of_aiperf(values: Values, command: Command) -> None:
    _set_endpoint(_last(values, "--custom-endpoint", "--endpoint") or _last(values, "--endpoint-type"), command)
    if url := command.options.get("--url"):
        command.set("--url", *(text if text and "://" in text else f"http://{text}" for text in url))
    if most := _last(values, "--concurrency"):
        command.set("--max-concurrency" if "--rate" in command.options else "--users", most)
    pattern = _last(values, "--arrival-pattern", "--request-rate-mode")
    if pattern in ("constant", "poisson"):
        command.set("--arrivals", pattern)
    if shape := _last(values, "--arrival-smoothness", "--vllm-burstiness"):
        command.set("--arrivals", "burst")
        command.set("--burstiness", shape)
    for what, names in _LENGTHS.items():
        if mean := _last(values, *names):
            command.set(f"--{what}-tokens", mean)
        _set_lengths(what, command.options.get(f"--{what}-tokens"), _last(values, *_STDS[what]), command)
    _set_prefix(
        _last(values, "--prefix-prompt-length", "--prompt-prefix-length", "--shared-system-prompt-length"),
        None,
        command,
    )
    if file := _last(values, "--input-file"):
        is_trace = "trace" in (_last(values, "--custom-dataset-type") or "") or "--fixed-schedule" in values
        command.set("--trace" if is_trace else "--file", file)
    body = {name: _number(value) for text in values.get("--extra-inputs", []) if ":" in text
            for name, _, value in [text.partition(":")]}  # fmt: skip
    _set_body(body, next((text for text in values.get("--extra-inputs", []) if text.startswith("{")), None), command)
    _set_pairs(values, command, sign=":")
    width, height = _last(values, "--image-width-mean"), _last(values, "--image-height-mean")
    if width and height:
        command.set("--image-size", f"{width}x{height}")


_LENGTHS = {
    "input": ("--isl", "--prompt-input-tokens-mean", "--synthetic-input-tokens-mean"),
    "output": ("--osl", "--prompt-output-tokens-mean", "--output-tokens-mean"),
}
_STDS = {
    "input": ("--isl-stddev", "--prompt-input-tokens-stddev", "--synthetic-input-tokens-stddev"),
    "output": ("--osl-stddev", "--prompt-output-tokens-stddev", "--output-tokens-stddev"),
}


def _set_endpoint(value: str | None, command: Command) -> None:
    if value is None:
        return
    if endpoint := _ENDPOINTS.get(value):
        command.set("--endpoint", endpoint)
    else:
        command.notes.append(f"{value}: no such endpoint here; choose one by --endpoint")


def _set_prefix(prefix: str | None, suffix: str | None, command: Command) -> None:
    """Set a shared prefix: elsewhere the input is what follows it, here it is both."""
    if suffix:
        command.set("--input-tokens", suffix)
    rest = command.options.get("--input-tokens", ["1024"])[-1] or "0"
    if prefix and prefix != "0":
        command.set("--prefix-tokens", prefix)
        command.set("--input-tokens", str(int(prefix) + int(rest)))


def _set_lengths(what: str, mean: list[str | None] | None, deviation: str | None, command: Command) -> None:
    """Draw lengths around a mean, where there is a deviation."""
    if deviation and deviation != "0" and mean:
        command.set(f"--{what}-lengths", f"normal:{mean[-1]},{deviation}")
        del command.options[f"--{what}-tokens"]


def _set_body(fields: Mapping[str, object], text: str | None, command: Command) -> None:
    try:
        added = json.loads(text) if text else {}
    except ValueError:
        command.notes.append(f"{text}: expected a JSON object")
        added = {}
    if body := {**fields, **added}:
        command.set("--extra-body", json.dumps(body))


def _set_pairs(values: Values, command: Command, sign: str) -> None:
    """Set limits and headers, except a key."""
    slos = [text.replace(":", "=") for group in values.get("--goodput", []) for text in group.split()]
    if slos:
        command.set(
            "--slo", *(f"{_SLOS.get(name, name)}={limit}" for name, _, limit in (one.partition("=") for one in slos))
        )
    headers = [text.partition(sign) for text in values.get("--header", [])]
    if any(name.strip().lower() == _KEY for name, _, _ in headers):
        command.notes.append(
            "`--api-key-env VARIABLE` takes the place of the header with the key: no key in a command line"
        )
    if plain := [f"{name.strip()}: {value.strip()}" for name, _, value in headers if name.strip().lower() != _KEY]:
        command.set("--header", *plain)


def _number(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


_COMPOSERS: Mapping[str, Callable[[Values, Command], None]] = {
    "vllm": _of_vllm,
    "guidellm": _of_guidellm,
    "aiperf": _of_aiperf,
}
