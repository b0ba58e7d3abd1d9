"""Options of other clients that become several options here, or depend on each other; those clients' defaults. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bezel_base.credentials.headers import is_credential_name
from bezel_base.credentials.names import names_secret
from bezel_base.errors import Problem, WrongValueError
from bezel_bench.commands.measure.load_options import field_names
from bezel_bench.load.plan import GENERATING

READ = frozenset({"--file", "--dataset", "--trace"})
"""Options with a name of what is read."""
_SLOS = {
    "ttft": "ttft", "tpot": "tpot", "e2el": "e2e", "time_to_first_token": "ttft", "inter_token_latency": "tpot",
    "request_latency": "e2e",
}  # fmt: skip
_WHOLE_RESPONSES = frozenset({"random", "random-mm", "timed_trace"})
"""Data sets of vLLM's clients whose responses go on past the end of the text, whatever the line says."""
_TEMPLATED = frozenset({"custom", "hf", "spec_bench", "speed_bench"})
"""Data sets whose texts `vllm bench serve` puts into the chat's template itself."""
_FILE = re.compile(r"[./~<].*|.*\.(jsonl?|csv|tsv|txt|parquet)")
_VARIABLE = re.compile(r"\$\{?\w+\}?")


class Values(dict[str, list[str]]):
    """Values of composed options by their names."""

    def last(self, *names: str) -> str | None:
        """The last value of the first of these options that has one."""
        return next((self[name][-1] for name in names if self.get(name)), None)


@dataclass
class Command:
    """A command here.

    Attributes:
        name: The command.
        options: Its options by name, with their values; None for an option without one.
        body: Fields of every request.
        notes: What it does not have, or has by default.
    """

    name: str = "run"
    options: dict[str, list[str | None]] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def set(self, name: str, *values: str | None) -> None:
        """Set an option."""
        self.options[name] = [*values]

    def leave_out(self, name: str, reason: str) -> None:
        """Remove an option, if it is set, and note the reason."""
        if values := self.options.pop(name, None):
            self.notes.append(f"{name} {' '.join(map(str, values))}: {reason}")

    def value(self, name: str, default: str = "") -> str:
        """The last value of an option, or what it is where the option is not set."""
        return self.options.get(name, [default])[-1] or default

    def add_field(self, path: str, text: str) -> None:
        """Add a field of every request, or one inside others: `a.b`."""
        *outer, last = path.split(".")
        fields = self.body
        for name in outer:
            fields = fields.setdefault(name, {})
        fields[last] = _number(text)


def compose(client: str, values: Values, command: Command, defaults: Mapping[str, str]) -> None:
    """Add the options that a client's composed ones become, and its defaults.

    Raises:
        WrongValueError: A value of which another is calculated is no number.
    """
    {"vllm": _of_vllm, "guidellm": _of_guidellm, "aiperf": _of_aiperf}[client](values, command)
    size = values.last("--image-width-mean", "--data width"), values.last("--image-height-mean", "--data height")
    command.options |= {"--image-size": ["x".join(map(str, size))]} if all(size) else {}
    for option, value in defaults.items():
        if option not in command.options and not (option == "--input-tokens" and READ & command.options.keys()):
            command.set(option, value)
    _set_pattern(command)
    _set_lengths(command)
    if command.value("--endpoint", "chat") not in GENERATING:
        command.body.pop("ignore_eos", None)
    for name in [name for name in command.body if any(map(names_secret, field_names({name: command.body[name]})))]:
        del command.body[name]
        command.notes.append(f"`--api-key-env VARIABLE` in place of the field {name}: no key in a command line")
    if command.body:
        command.set("--extra-body", json.dumps(command.body))


def _of_vllm(values: Values, command: Command) -> None:
    if "--url" not in command.options:
        host, port = values.last("--host") or "127.0.0.1", values.last("--port") or "8000"
        command.set("--url", f"http://{f'[{host}]' if ':' in host else host}:{port}")
    command.options.setdefault("--endpoint", ["completions"])
    requests, most = command.value("--requests", "1000"), values.last("--max-concurrency", "--multi-turn-concurrency")
    if requests == "-1":
        command.leave_out("--requests", "give it the number of the file's entries")
        requests = "1000"
    if most and (factor := values.last("--sweep-num-prompts-factor")):
        requests = calculate(most, "*", factor)
    users = requests
    if "--multi-turn" in values:
        command.set("--turns", values.last("--multi-turn-num-turns") or "3")
        requests = calculate(requests, "*", command.value("--turns"))
    command.set("--requests", requests)
    name, path = values.last("--dataset-name") or "random", values.last("--dataset-path")
    if path:
        has_instants = "trace" in name and "--no-self-timed" not in values
        _set_source(command, path, hub=name == "hf", split=values.last("--hf-split"), traced=has_instants)
    elif not name.startswith(("random", "prefix")):
        command.notes.append(f"--dataset-name {name}: name its file (--file, --trace) or data set (--dataset)")
    rate = values.last("--request-rate") or "inf"
    _set_level(command, most, None if rate == "inf" else rate, users)
    if "--ignore-eos" not in values and name not in _WHOLE_RESPONSES and not name.startswith("$"):
        command.body.setdefault("ignore_eos", False)
    _note_endpoint(command, name)
    _add_json(command, values.last("--extra-body") or "{}")
    _set_pairs(values, command, sign="=")
    if "--save-result" in values:
        folder, file = values.last("--result-dir") or ".", values.last("--result-filename") or "result.json"
        command.set("--out", file if folder == "." else f"{folder.rstrip('/')}/{file}")


def _note_endpoint(command: Command, dataset: str) -> None:
    """Note what vLLM's clients send to one of chats and completions alone."""
    endpoint = command.value("--endpoint")
    if endpoint == "chat" and "logprobs" in command.body:
        command.notes.append(f"--logprobs {command.body.pop('logprobs')}: it is sent to no chat there")
    if endpoint == "completions" and dataset in _TEMPLATED:
        command.notes.append("`vllm bench serve` puts the chat's template around each text: use --endpoint chat")


def _of_guidellm(values: Values, command: Command) -> None:
    kind = values.last("--profile kind", "--rate-type") or "sweep"
    level = values.last("--profile rate", "--profile streams", "--rate")
    most = values.last("--profile max_concurrency", "--max-concurrency")
    command.name = {"sweep": "rates", "knee": "run" if level else "rates", "goodput": "goodput"}.get(kind, "run")
    if command.name == "rates":
        # Of a sweep's loads one has one user, and one has many; the others have rates.
        command.set("--steps", calculate(values.last("--profile sweep_size") or level or "10", "-", "2"))
        command.set("--users", most or "512")
        command.set("--arrivals", values.last("--profile strategy_type") or "constant")
    elif kind in ("constant", "poisson", "async"):
        _set_level(command, most, level or "1")
        command.set("--arrivals", "poisson" if kind == "poisson" else "constant")
    elif kind in ("concurrent", "throughput", "synchronous", "knee"):
        _set_level(command, None, None, "1" if kind == "synchronous" else level or most or "512")
    elif kind != "replay":
        command.notes.append(f"--profile {kind}: choose --users or --rate, and limits of `goodput` by --slo")
    figure = "" if command.name == "run" else "_p99"
    slos = {name: values.last(f"--metrics slo.{name}_ms") for name in ("ttft", "tpot", "e2el")}
    if limits := [f"{_SLOS[name]}{figure}={limit}" for name, limit in slos.items() if limit]:
        command.set("--slo", *limits)
    if source := values.last("--data path", "--data source.path", "--data source", "--dataset"):
        split = values.last("--data load_kwargs.split", "--data-args split")
        _set_source(command, source, hub=True, split=split, traced=kind == "replay")


def _of_aiperf(values: Values, command: Command) -> None:
    urls = [url for text in values.get("--url", ["localhost:8000"]) for url in text.split(",")]
    first, *others = (text if "://" in text or _VARIABLE.fullmatch(text) else f"http://{text}" for text in urls)
    command.set("--url", first)
    command.options |= {"--also-url": [*others]} if others else {}
    file, sessions = values.last("--input-file"), values.last("--conversation-num")
    if file:
        is_trace = "trace" in (values.last("--custom-dataset-type") or "") or "--fixed-schedule" in values
        _set_source(command, file, traced=is_trace and "--no-fixed-schedule" not in values)
    _set_level(command, values.last("--concurrency", "--session-concurrency"), values.last("--request-rate"), "1")
    if sessions and "--requests" not in command.options:
        command.set("--requests", calculate(sessions, "*", command.value("--turns", "1")))
    elif not {"--requests", "--seconds"} & command.options.keys():
        command.notes += ["each entry is sent once there: here --requests N"] if "--file" in command.options else []
        command.options |= {} if file else {"--requests": ["10"]}
    for text in values.get("--extra-inputs", []):
        if text.startswith("{"):
            _add_json(command, text)
        else:
            for name, _, value in (pair.partition(":") for pair in ([text] if "{" in text else text.split(","))):
                command.add_field(name.strip(), value)
    for name in {"max_tokens", "max_completion_tokens"} & command.body.keys():
        command.set("--output-tokens", str(command.body.pop(name)))
    command.body.setdefault("ignore_eos", False)
    _set_pairs(values, command, sign=":")


def _set_level(command: Command, most: str | None, rate: str | None, users: str | None = None) -> None:
    """Set a rate, or users, which are the most requests at once if there is such a limit."""
    if rate or "--trace" in command.options:
        command.options |= {"--rate": [rate]} if rate else {}
        command.options |= {"--max-concurrency": [most]} if most else {}
    else:
        command.set("--users", most or users)


def _set_pattern(command: Command) -> None:
    """Settle what depends on the pattern: a trace has instants, a rate a shape of its gaps, and turns no rate."""
    if "--trace" in command.options:
        command.notes.append("--trace: its timestamps are milliseconds, its blocks of 512 tokens")
        for option in ("--rate", "--input-tokens", "--output-tokens"):
            command.leave_out(option, "the trace has its own")
    if command.value("--turns", "1") != "1" and "--rate" in command.options:
        command.leave_out("--rate", "turns wait for each other; here they have --users")
        command.set("--users", *command.options.pop("--max-concurrency", ["1"]))
    if "--rate" not in command.options and command.name == "run":
        command.leave_out("--arrivals", "it is of a rate")
        command.leave_out("--burstiness", "it is of a rate")
    elif command.value("--burstiness", "1") not in ("1", "1.0"):
        command.set("--arrivals", "burst")
    else:
        command.options.pop("--burstiness", None)
        if command.value("--arrivals") not in ("constant", "poisson"):
            command.options.pop("--arrivals", None)  # gamma, whose shape is 1 unless it is given


def _set_lengths(command: Command) -> None:
    """Settle lengths: drawn ones where there is a deviation; with a prefix, which here is a part of the input."""
    prefix, several = command.value("--prefix-tokens", "0"), command.value("--turns", "1") != "1"
    if several:
        command.options.setdefault("--answers", ["served"])
    if prefix == "0" or several:
        command.leave_out("--groups", "no prefix is shared")
        command.leave_out("--prefix-tokens", "each turn repeats the earlier ones, and no other prefix")
    for what in ("input", "output"):
        lengths, tokens = f"--{what}-lengths", f"--{what}-tokens"
        if not command.value(lengths, "0").strip("0."):
            command.options.pop(lengths, None)
        elif tokens not in command.options or several or "--prefix-tokens" in command.options:
            command.leave_out(lengths, "turns, and prompts with a prefix, have one length")
        else:
            command.set(lengths, f"normal:{command.value(tokens)},{command.value(lengths)}")
            del command.options[tokens]
    if command.value("--output-tokens") == "-1":
        del command.options["--output-tokens"]
        command.set("--length-column", "output_tokens")  # of vLLM's data set `custom`
    if "--prefix-tokens" in command.options:
        command.set("--input-tokens", calculate(prefix, "+", command.value("--input-tokens", "128")))
    generates = command.name == "run" and command.value("--endpoint", "chat") in GENERATING
    if generates and not {"--output-tokens", "--output-lengths", "--length-column", "--trace"} & command.options.keys():
        command.notes.append("responses end by themselves there: here after 128 tokens, or give --output-tokens")
        command.body.setdefault("ignore_eos", False)


def _set_source(
    command: Command, source: str, *, hub: bool = False, split: str | None = None, traced: bool = False
) -> None:
    """Set a trace, a file, or what is a data set of the hub unless it looks like a file."""
    if traced or not hub or _FILE.fullmatch(source):
        command.set("--trace" if traced else "--file", source)
    elif source.startswith("$"):
        command.notes.append(f"{source}: write its value into the line")
    else:
        command.set("--dataset", f"{source}:{split}" if split else source)


def _add_json(command: Command, text: str) -> None:
    """Add the fields of a JSON object, which count before others."""
    fields = _number(text)
    if isinstance(fields, dict):
        command.body |= fields
    else:
        command.notes.append(f"{text}: expected a JSON object")


def _set_pairs(values: Values, command: Command, sign: str) -> None:
    """Set limits and headers, except a key."""
    slos = [text.replace(":", "=").partition("=") for group in values.get("--goodput", []) for text in group.split()]
    command.notes += [f"--goodput {name}: no limit of it" for name, _, _ in slos if name not in _SLOS]
    if limits := [f"{_SLOS[name]}={limit}" for name, _, limit in slos if name in _SLOS]:
        command.set("--slo", *limits)
    headers = [[part.strip(" {}\"'") for part in text.partition(sign)] for text in values.get("--header", [])]
    plain = [f"{name}: {value}" for name, _, value in headers if not is_credential_name(name)]
    if plain:
        command.set("--header", *plain)
    if len(plain) < len(headers):
        command.notes.append("`--api-key-env VARIABLE` in place of a header with a key: no key in a command line")


def calculate(left: str, sign: str, right: str) -> str:
    """A number made of two; of variables, the calculation for a shell.

    Raises:
        WrongValueError: One of them is neither.
    """
    try:
        first, second = int(left), int(right)
        return str({"+": first + second, "-": first - second, "*": first * second}[sign])
    except ValueError:
        if "$" in left + right:
            return f"$(({left} {sign} {right}))"
        value, repair = f"{left} {sign} {right}", "correct it in the line."
        raise WrongValueError(Problem("--like", value, "expected whole numbers.", repair)) from None


def _number(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
