"""One row for each recording of a real vLLM: on which server it was made, and which tests hold the simulated one to it.

A recording that is a request and its answer is compared field by field and header by header (`test_contract.py`);
others name the tests that look at them. A recording that says nothing of a server says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulated_vllm_support.compare import WEIGHTS
from simulated_vllm_support.samples import FIXTURES


@dataclass(frozen=True)
class Row:
    """What holds a recording.

    Attributes:
        configuration: the server that it was made on (`vllm_servers.py`), None for a recording of no server.
        compared: whether it is a request and its answer.
        free: fields that its own tests look at.
        tests: names of its own tests.
        why: why it is not compared with a server, or what else to know.
    """

    configuration: str | None
    compared: bool = True
    free: frozenset[str] = frozenset()
    tests: tuple[str, ...] = ()
    why: str = ""


_END = frozenset({"finish_reason", "stop_reason", "completion_tokens", "reasoning", "reasoning_tokens"})
_FRAMING = ("test_a_stream_is_framed_as_recorded",)
_METRICS = ("test_every_family_has_the_recorded_name_type_help_and_labels", "test_buckets_are_the_recorded_ones")
_GROWTH = ("test_counters_grow_by_what_was_asked_and_answered", "test_gauges_return_to_rest")
_CLIENT = "What the load client printed or wrote, not what the server said"
_BENCH = f"{_CLIENT}: `tools/vllm/contract.py bench` runs that client against the simulated server."

_ANSWERS = {
    "plain": (
        "anthropic-messages chat chat-n2-stop chat-stream-continuous-usage chat-stream-nousage chat-stream-usage "
        "completions completions-ignore_eos-logprobs completions-stream-usage detokenize err-404 err-405 err-bad-json "
        "err-image-on-text-model err-max_tokens-negative-chat err-max_tokens-negative-completions "
        "err-max_tokens-string err-max_tokens-zero-chat err-missing-messages err-no-model-field "
        "err-prompt-plus-max_tokens err-stream-unknown-model err-stream_options-without-stream err-temperature "
        "err-too-long-prompt-chat "
        "err-too-long-prompt-completions err-tool-auto-without-flag err-top_p err-unknown-field err-unknown-model-chat "
        "err-unknown-model-completions err-wrong-content-type health load models ping responses tokenize-chat "
        "tokenize-completion version"
    ),
    "small": "err-bad-role err-empty-body err-empty-messages err-empty-prompt err-too-many-tokens-chat "
    "err-too-many-tokens-completions tool-auto",
    "small-dead": "chat-engine-dead health-engine-dead models-engine-dead",
}
# Recorded before the engine died, as any other server answers them.
_BEFORE_DEATH = ["detokenize", "health", "load", "models", "ping", "tokenize-chat", "tokenize-completion", "version"]
_TWICE = _ANSWERS["plain"].split()


def _rows() -> dict[str, Row]:
    rows = {name: Row(server) for server, names in _ANSWERS.items() for name in names.split()}
    rows |= {name: Row("plain", tests=_FRAMING) for name in rows if "-stream-" in name and not name.startswith("err")}
    rows["err-prompt-plus-max-tokens2"] = Row(
        "small", free=_END | {"total_tokens"}, tests=("test_more_output_than_fits_is_cut_to_what_fits",)
    )
    rows["structured-json"] = Row(
        "small",
        free=_END | {"total_tokens", "content"},
        tests=("test_an_answer_of_a_given_form_has_it",),
        why="The recorded model filled its limit with blanks inside the JSON; the form is compared, not its blanks.",
    )
    for name in _TWICE:
        rows[f"engine-dead/{name}"] = Row("plain" if name in _BEFORE_DEATH else "plain-dead")
        rows[f"ngram-apikey/{name}"] = Row("keyed")
    rows["ngram-apikey/err-tool-auto-without-flag"] = Row(
        "keyed", why="Recorded on a server that had the flag: it is an answer, not a refusal."
    )
    for folder, server in (("", "plain"), ("engine-dead/", "plain-dead"), ("ngram-apikey/", "keyed")):
        rows[f"{folder}openapi"] = Row(
            server,
            compared=False,
            tests=("test_the_description_is_the_recorded_one_for_what_is_served",),
        )
        rows[f"{folder}metrics"] = Row(server, compared=False, tests=(*_METRICS, *(_GROWTH if not folder else ())))
    rows["metrics-ngram"] = Row(
        "keyed",
        compared=False,
        tests=(*_METRICS, "test_drafts_are_counted_by_their_place"),
        why="Recorded on a server without the keyed one's parser of tool calls, whose family is left out here.",
    )
    rows["metrics-mtp"] = Row("mtp", compared=False, tests=(*_METRICS, "test_drafts_are_counted_by_their_place"))
    rows["completions-stream-specdecode-multi-token-chunks"] = Row(
        "mtp", compared=False, tests=("test_a_drafting_server_puts_several_tokens_into_a_chunk",), why=WEIGHTS
    )
    rows["chat-stream-mtp-multi-token-chunks"] = Row(None, compared=False, why="The recording is empty.")
    rows["err-apikey"] = Row("keyed", compared=False, tests=("test_a_key_is_asked_for_where_it_was",))
    rows["apikey-unprotected-routes"] = Row(
        "keyed", compared=False, tests=("test_the_unguarded_routes_answer_without_a_key",)
    )
    rows["err-overload-queue-full"] = Row("small", compared=False, tests=("test_a_full_queue_is_refused_as_recorded",))
    rows["startup-health-transition"] = Row(
        "plain", compared=False, tests=("test_nothing_listens_until_the_server_is_healthy",)
    )
    rows["failing-starts"] = Row(
        "starts",
        compared=False,
        tests=("test_a_failing_start_ends_as_recorded",),
        why="Two of the seven failed for want of what a server on CPU lacks: the simulated one has an accelerator.",
    )
    rows["flag-verdicts-0.32.0"] = Row(
        None,
        compared=False,
        tests=(
            "test_what_the_real_server_accepts_is_accepted",
            "test_what_the_real_engine_refuses_is_refused_with_its_words",
            "test_what_the_real_parser_refuses_ends_with_status_2_and_its_message",
        ),
        why="The real parser's verdicts, recorded from it without a server; the simulated one's are held to them.",
    )
    rows["serve-args-0.32.0"] = Row(
        None,
        compared=False,
        tests=("test_every_option_of_the_release_is_parsed",),
        why="The real parser's options: the simulated parser is made of the same list.",
    )
    rows["serve-args-0.33.0"] = Row(
        None, compared=False, why="Options alone: this release is compared by requests of clients."
    )
    rows["serve-help-all"] = Row(None, compared=False, why="The text of --help; the simulated parser prints its own.")
    for name in ("output", "mtp-output", "mtp-output0", "mtp-output1", "help"):
        rows[f"bench-serve-{name}"] = Row(None, compared=False, why=_BENCH)
    for name in ("t0", "t1"):
        rows[f"bench-serve-mtp-result-{name}"] = Row(None, compared=False, why=_BENCH)
    rows["bench-serve-mtp-result"] = Row(None, compared=False, why=_BENCH)
    rows["max-rate"] = Row(
        None, compared=False, why="Rates of a tiny model on two cores: nothing a simulation repeats."
    )
    rows["pip-freeze"] = Row(None, compared=False, why="The packages of the machine of the recordings.")
    return dict(sorted(rows.items()))


ROWS = _rows()
# Recorded later, on the server of the CPU install: refusals and answers that the samples do not have.
MORE = {f"more/{file.stem}": Row("parsers") for file in sorted((FIXTURES / "more").glob("*.txt"))}
# What such a recording showed and the simulated server does otherwise: what, why, evidence.
KNOWN = (
    (
        "/v1/decisions and /v1/systemone",
        "the probabilities of labels are made up, as all text is",
        "82 of 83 calls to 0.33.0 with a tiny Gemma 4, in whose tokenizer every label is a token, are answered alike",
    ),
    (
        "structured_outputs with a regex or a grammar",
        "answered with prose",
        "only choices and JSON schemas are made up",
    ),
    (
        "prompts of token ids beyond the vocabulary",
        "accepted; the real server answers 400 `Token id 999999 is out of vocabulary`",
        "the stand-in tokenizer has more ids than the checkpoint's",
    ),
    (
        "POST /v1/responses with tool_choice required or named",
        "a function that must be called is called as in chat, a complete call; random weights wrote the begin of one",
        (
            "0.32.0 with --tool-call-parser hermes forces the call in both: both answers began with its name and no "
            "arguments that fit"
        ),
    ),
    (
        "tool_choice required or named, with --tool-call-parser gemma4",
        "always a call of that tool; random weights wrote prose, which the real parser left as it was",
        "0.32.0 does not force Gemma 4's own form of a call",
    ),
    (
        "enable_thinking",
        "thoughts come first; random weights had none",
        "the chat template of the tiny model ignores it",
    ),
)
