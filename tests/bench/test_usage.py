"""Options of every `bezel bench` command: each has an effect or is refused, before a server is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel.cli.command_table import command_table
from bezel.cli.main import main
from bezel_bench.commands.measure.usage import RULES

if TYPE_CHECKING:
    from pathlib import Path

# Nothing listens there: who gets as far as a server is told so, with exit code 1.
ADDRESS = "http://127.0.0.1:9"
URL = ["--url", ADDRESS, "--public"]
JOB = [
    *("--tasks", "1", "--bucket", "b", "--job-region", "us-east4", "--project", "my-project-1"),
    *("--image", "r/i@sha256:1", "--service-account", "a@my-project-1.iam.gserviceaccount.com"),
]
BASE = {
    "run": URL,
    "job": [*URL, *JOB],
    "sweep": [*URL, "--out", "OUT"],
    "rates": URL,
    "goodput": [*URL, "--slo", "e2e_p50=1s"],
    "ab": ["--arm", f"a={ADDRESS}", "--arm", "b=http://127.0.0.1:19", "--public"],
}
START = ["--vary", "x=1,2", "--start", "exit 3", "--url", ADDRESS]

# Options with an effect in every mode of their command.
SERVER = "url stack model endpoint public simulated"
RECORD = "title checkpoint accelerator chips instances concurrency region usd_per_hour config"
LOAD = (
    "users rate user_stages rate_stages trace requests seconds deadline file dataset extra_body workers warmup "
    "warmup_seconds max_failed cancel repeats out json"
)
ALWAYS = {
    "run": f"{SERVER} {RECORD} {LOAD} like also_url",
    "job": (
        f"{SERVER} {RECORD} {LOAD} tasks bucket job_region project ready_seconds job_seconds image service_account"
    ),
    "sweep": (
        f"{SERVER} {RECORD} seed workers deadline json out force contexts users requests_per_user full metric "
        "max_minutes max_usd api_key_env header"
    ),
    "rates": (
        f"{SERVER} {RECORD} seed workers deadline json out rates arrivals seconds input_tokens slo max_minutes max_usd "
        "api_key_env header"
    ),
    "goodput": (
        f"{SERVER} {RECORD} seed workers deadline json out users rate step runs input_tokens slo max_minutes max_usd "
        "api_key_env header"
    ),
    "ab": (
        f"{SERVER} {RECORD} seed workers deadline json out arm vary start rounds users requests input_tokens "
        "max_minutes max_usd api_key_env header"
    ),
    "compare": "before after tolerance json",
    "export": "result format cell out",
    "report": "results out markdown png json",
    "audit": "files machine model json strict",
    "image": "repository",
    "worker": "place",
}

# Option, beside what it has no effect, and beside what it has one. FILE is a file of prompts, TRACE one of lengths.
OF_SERVER = [
    ("impersonate", "--impersonate a@b.c --public", ""),
    ("audience", "--audience https://x --public", ""),
    ("ca_file", "--ca-file CA", ""),
    ("output_tokens", "--output-tokens 9 --endpoint embeddings", "--output-tokens 19"),
]
OF_RUN = [
    ("force", "--force", "--force --out OUT"),
    ("ramp", "--ramp 1 --rate 2", "--ramp 1 --users 2"),
    ("ramp", "--ramp 1 --user-stages 2:1", ""),
    ("cancel_after", "--cancel-after 1", "--cancel-after 1 --cancel 9"),
    ("groups", "--groups 2", "--groups 2 --prefix-tokens 20"),
    ("image_size", "--image-size 8x8", "--image-size 8x8 --images 1"),
    ("input_tokens", "--input-tokens 9 --input-lengths normal:9,1", "--input-tokens 9"),
    ("input_tokens", "--input-tokens 9 --file FILE", ""),
    ("input_tokens", "--input-tokens 9 --trace TRACE", "--input-tokens 9 --trace INSTANTS"),
    ("output_tokens", "--output-tokens 9 --output-lengths normal:9,1", "--output-tokens 9 --file FILE"),
    ("output_tokens", "--output-tokens 9 --trace TRACE", "--output-tokens 9 --trace INSTANTS"),
    ("seed", "--seed 2 --file FILE", "--seed 2 --file FILE --rate 2"),
    ("seed", "--seed 2 --file FILE --rate 2 --arrivals constant", "--seed 2"),
    ("run_id", "--run-id x --file FILE", "--run-id x"),
    ("column", "--column a", "--file TABLE --column a"),
    ("length_column", "--length-column b", "--file TABLE --column a --length-column b"),
    ("min_chars", "--min-chars 2", "--file FILE --min-chars 2"),
    ("max_chars", "--max-chars 20", "--file FILE --max-chars 20"),
    ("output_tokens", "--output-tokens 9 --file TABLE --column a --length-column b", ""),
    # By the rules of a load.
    ("arrivals", "--arrivals constant", "--arrivals constant --rate 2"),
    ("burstiness", "--burstiness 2", "--burstiness 2 --rate 2"),
    ("max_in_flight", "--max-in-flight 2", "--max-in-flight 2 --rate 2"),
    ("max_concurrency", "--max-concurrency 2", "--max-concurrency 2 --rate 2"),
    ("max_concurrency", "--max-concurrency 2 --rate 2 --max-in-flight 3", ""),
    ("think_time", "--think-time 1 --rate 2", "--think-time 1"),
    ("answers", "--answers served", "--answers served --turns 2"),
    ("documents", "--documents 2", "--documents 2 --endpoint rerank"),
    ("images", "--images 1 --file FILE", "--images 1"),
    ("images", "--images 1 --endpoint completions", ""),
    ("audio_seconds", "--audio-seconds 1 --turns 2", "--audio-seconds 1"),
    ("turns", "--turns 2 --rate 2", "--turns 2"),
    ("turns", "--turns 2 --file FILE", ""),
    ("prefix_tokens", "--prefix-tokens 20 --file FILE", "--prefix-tokens 20"),
    ("prefix_tokens", "--prefix-tokens 20 --turns 2", ""),
    ("input_lengths", "--input-lengths normal:9,1 --file FILE", "--input-lengths normal:9,1"),
    ("input_lengths", "--input-lengths normal:9,1 --trace TRACE", ""),
    ("output_lengths", "--output-lengths normal:9,1 --turns 2", "--output-lengths normal:9,1"),
    ("output_lengths", "--output-lengths normal:9,1 --endpoint rerank", ""),
    ("slo", "--slo ttft=5 --endpoint embeddings", "--slo e2e=5 --endpoint embeddings"),
    ("slo", "--slo ttft=5 --slo ttft=6", "--slo ttft=5 --slo e2e=6"),
]
OWN = [("api_key_env", "--api-key-env NONE_SUCH", ""), ("header", "--header a", "--header a:b")]
ROWS = {
    "run": [*OF_SERVER, *OF_RUN, *OWN,
        ("ca_file", "--rate 2 --ca-file CA --also-url http://127.0.0.1:19",
            "--rate 2 --ca-file CA --also-url https://127.0.0.1:19"),
    ],
    "job": [*OF_SERVER, *OF_RUN, ("api_key_env", "--api-key-env PATH", ""), ("header", "--header a:b", ""),
        ("also_url", "--also-url http://127.0.0.1:19", ""),
    ],
    "sweep": [
        *OF_SERVER,
        ("share", "--share 50 --full", "--share 50"),
        ("metric", "--metric output_tokens_per_second --endpoint rerank", "--metric output_tokens_per_second"),
        ("max_usd", "--max-usd 1", "--max-usd 1 --usd-per-hour 2"),
    ],
    "rates": [
        *OF_SERVER,
        ("force", "--force", "--force --out OUT"),
        ("steps", "--steps 4 --rates 1,2", "--steps 4"),
        ("users", "--users 4 --rates 1,2", "--users 4"),
        ("slo", "--slo tpot_p50=1s --endpoint embeddings", "--slo e2e_p99=1s --endpoint embeddings"),
    ],
    "goodput": [
        *OF_SERVER,
        ("force", "--force", "--force --out OUT"),
        ("seconds", "--seconds 9", "--seconds 9 --rate 1:2"),
        ("slo", "--slo tpot_p50=1s --endpoint embeddings", "--slo e2e_p99=1s --endpoint embeddings"),
        ("slo", "--slo e2e_p50=2s", "--slo e2e_mean=2s"),
    ],
    "ab": [
        ("impersonate", "--impersonate a@b.c --public", ""),
        ("audience", "--audience https://x --public", ""),
        ("force", "--force", "--force --out OUT"),
        ("start_seconds", "--start-seconds 9", "START --start-seconds 9"),
        ("start", "--start x", "START"),
        ("output_tokens", "--output-tokens 199 --endpoint embeddings", "--output-tokens 199"),
        ("ca_file", "START --ca-file CA", ""),
    ],
}  # fmt: skip
# Their rules name what they exclude instead.
NAMED_OTHERWISE = {"turns", "prefix_tokens", "input_lengths", "output_lengths", "images"}
CASES = [(command, *row) for command, rows in ROWS.items() for row in rows]

# Wrong values, each of an option that one or several commands have.
OF_ANY = [
    ("url", "--url 127.0.0.1:8000", "not an http(s) address"),
    ("url", "--url http://[", "not an http(s) address"),
    ("chips", "--chips 0", "give 1 or more"),
    ("instances", "--instances -1", "give 1 or more"),
    ("concurrency", "--concurrency 0", "give 1 or more"),
    ("usd_per_hour", "--usd-per-hour -1", "give 0 or more"),
    ("usd_per_hour", "--usd-per-hour nan", "give 0 or more"),
    ("deadline", "--deadline 0", "could be complete in time"),
    ("workers", "--workers 0", ""),
    ("output_tokens", "--output-tokens 0", ""),
]
VALUES = {
    "run": [
        *OF_ANY,
        ("users", "--users 0", "no request would be sent"),
        ("rate", "--rate 0", "above 0"),
        ("rate", "--rate nan", "above 0"),
        ("rate_stages", "--rate-stages 1", "expected a list of stages"),
        ("user_stages", "--user-stages 1.5:2", "expected a number of users"),
        ("requests", "--requests 0", "no request would be sent"),
        ("seconds", "--seconds 0", "no request would be sent"),
        ("warmup", "--warmup -1", "no such number"),
        ("warmup_seconds", "--warmup-seconds inf", "for such a time"),
        ("cancel", "--cancel 100", "the others are measured"),
        ("cancel_after", "--cancel 9 --cancel-after -1", "no client waits for such a time"),
        ("max_failed", "--max-failed 100", "expected the percentage"),
        ("max_concurrency", "--rate 2 --workers 3 --max-concurrency 2", "some would send nothing"),
        ("repeats", "--repeats 0", "nothing would be measured"),
        ("slo", "--slo speed=3", "expected a limit"),
        ("file", "--file none.txt", "none.txt"),
        ("file", "--file TABLE", "name one by --column"),
        ("also_url", "--also-url ftp://x", "not an http(s) address"),
        ("dataset", "--dataset :train", "expected the name of a data set"),
        ("column", "--file FILE --column x", "there is no `x`"),
        ("length_column", "--file TABLE --column a --length-column x", "there is no `x`"),
        ("min_chars", "--file FILE --min-chars 99", "lower --turns or --min-chars"),
        ("max_chars", "--file FILE --max-chars 0", "no entry of the file has such a length"),
        ("trace", "--trace none.txt", "none.txt"),
        ("input_lengths", "--input-lengths normal:9", "expected a distribution"),
        ("output_lengths", "--output-lengths file:none", "none"),
        ("image_size", "--images 1 --image-size 0x1", "expected pixels"),
        ("extra_body", "--extra-body []", "expected a JSON object"),
        ("extra_body", '--extra-body {"messages":[]}', "the client writes this field"),
        ("extra_body", '--extra-body {"max_tokens":null}', "give 1 or more"),
    ],
    "job": [
        *[row for row in OF_ANY if row[0] != "workers"],
        ("tasks", "--tasks 0", "nothing would be sent"),
        ("tasks", "--tasks 3 --users 2", "some tasks would send nothing"),
        ("tasks", "--tasks 3 --users 3 --warmup 1", "with 1 user some tasks would send nothing"),
        ("workers", "--workers 2", "a task is one process"),
        ("job_seconds", "--job-seconds 9", "may end before the load"),
    ],
    "sweep": [
        *OF_ANY,
        ("share", "--share 0", "expected a percentage"),
        ("share", "--share nan", "expected a percentage"),
        ("contexts", "--contexts 0,1", "list of integers above 0"),
        ("users", "--users x", "list of integers above 0"),
        ("requests_per_user", "--requests-per-user 0", "give 1 or more"),
        ("max_minutes", "--max-minutes 0", "nothing could be measured"),
        ("max_usd", "--max-usd 0 --usd-per-hour 1", "nothing could be measured"),
    ],
    "rates": [
        *[row for row in OF_ANY if row[0] != "output_tokens"],
        ("rates", "--rates 0,1", "list of requests per second"),
        ("rates", "--rates x", "list of requests per second"),
        ("steps", "--steps 1", "its lowest and its highest rate"),
        ("steps", "--steps 1000000000", "each rate is a load"),
        ("users", "--users 1", "show the highest throughput"),
        ("seconds", "--seconds inf", "a load needs some time"),
        ("slo", "--slo ttft=5", "expected a limit"),
        ("output_tokens", "--output-tokens 0", "no token"),
    ],
    "goodput": [
        *OF_ANY,
        ("runs", "--runs 0", "nothing would be measured"),
        ("users", "--users 5", "expected a range of loads"),
        ("rate", "--rate x:y", "expected a range of loads"),
        ("rate", "--rate 3:2", "a range of loads rises"),
        ("step", "--step 0", "a range of loads rises"),
        ("step", "--step 1e-9", "a range of loads rises"),
        ("users", "--users 1.5:8", "expected a range of loads"),
        ("users", "--users 1:inf", "expected a range of loads"),
        ("rate", "--rate 1e-300:1e300", "a range of loads rises"),
        ("slo", "--slo e2e_p50=1.2.3s", "expected a limit"),
        ("slo", f"--slo e2e_p99={'9' * 400}s", "expected a limit"),
        ("seconds", "--rate 1:2 --seconds 0", "a load needs some time"),
        ("slo", "--slo ttft=5", "expected a limit"),
        ("input_tokens", "--input-tokens 0", "no token"),
        ("max_minutes", "--max-minutes nan", "nothing could be measured"),
    ],
    "ab": [
        *[row for row in OF_ANY if row[0] != "url"],
        ("arm", "--arm c", "expected a name and a server"),
        ("arm", "--arm c=ftp://x", "not an http(s) address"),
        ("arm", f"--arm c={ADDRESS}/v1/", "share a server or a name"),
        ("vary", "--vary x=1", "not defined"),
        ("rounds", "--rounds 1", "so few rounds"),
        ("requests", "--requests 0", "no request would be sent"),
        ("users", "--users 0", "no request would be sent"),
        ("max_usd", "--max-usd 1", "cannot be kept"),
    ],
}
WRONG = [(command, line, message) for command, rows in VALUES.items() for _, line, message in rows]


@pytest.fixture
def complete_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Returns a command line whose words in capitals are files."""
    monkeypatch.delenv("HTTP_PROXY", raising=False)
    monkeypatch.chdir(tmp_path)
    files = {
        "FILE": ("prompts.txt", "one prompt\n"),
        "TABLE": ("table.csv", "a,b\n1,2\n"),
        "INSTANTS": ("instants.txt", "0\n0.5\n"),
        "TRACE": ("trace.jsonl", '{"timestamp": 0, "input_length": 9, "output_length": 2, "hash_ids": [1]}\n'),
        "CA": ("ca.pem", "no certificate\n"),
        "OUT": ("out.json", ""),
    }
    for name, text in files.values():
        if text:
            (tmp_path / name).write_text(text)

    def complete(command: str, line: str) -> list[str]:
        arguments = [*(START if line.startswith("START") else BASE[command]), *line.removeprefix("START").split()]
        if "--url" in line:
            arguments = [*BASE[command][2:], *line.split()] if command != "ab" else arguments
        return [command, *(str(tmp_path / files[word][0]) if word in files else word for word in arguments)]

    return complete


@pytest.mark.slow
@pytest.mark.parametrize(("command", "option", "ignored", "used"), CASES)
def test_option_without_effect_is_refused_before_a_server_is_asked(  # type: ignore[no-untyped-def]
    command: str, option: str, ignored: str, used: str, complete_line, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *complete_line(command, ignored)]) == 2
    error = capsys.readouterr().err
    assert f"--{option.replace('_', '-')}" in error or option in NAMED_OTHERWISE
    assert "Repair: " in error
    assert "no server responds" not in error
    if used:
        assert main(["bench", *complete_line(command, used)]) == 1
        assert "no server responds there" in (error := capsys.readouterr().err) or "exit code 3" in error


@pytest.mark.parametrize(("command", "line", "message"), WRONG)
def test_wrong_value_is_told_before_a_server_is_asked(  # type: ignore[no-untyped-def]
    command: str, line: str, message: str, complete_line, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *complete_line(command, line)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "no server responds" not in error


def test_each_option_of_each_command_is_in_a_table() -> None:
    commands = command_table().spec["commands"]["bench"]["commands"]
    assert set(commands) == set(ALWAYS)
    for command in commands:
        conditional = {row[0] for row in ROWS.get(command, ())}
        assert {*ALWAYS[command].split()} | conditional == {*command_table().defaults_of("bench", command)}, command


def test_each_rule_has_a_case() -> None:
    """The count of what was tried: options of a command that have no effect beside others, and wrong values."""
    tried = {(command, option) for command, option, _, _ in CASES}
    assert {(command, rule.option) for command, rules in RULES.items() for rule in rules} <= tried
    assert len(CASES) == sum(map(len, ROWS.values()))
    assert (len(CASES), len(WRONG)) == (124, 129)


def test_all_problems_are_told_at_once(complete_line, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    assert main(["bench", *complete_line("run", "--groups 2 --force --chips 0 --header Key:planted-secret")]) == 2
    error = capsys.readouterr().err
    assert [name in error for name in ("--groups", "--force", "--chips")] == [True] * 3
    assert "planted-secret" not in error
