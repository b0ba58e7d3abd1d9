"""Images and audio of generated prompts: of the requested size, readable by others, different for each request."""

import base64
import io
import json
import struct
import wave
import zlib

import pytest

from bench_support.tokenizer import TokenServer, counting
from bezel_base.errors import UserError
from bezel_bench.load.plan import Body, Closed, Load, PromptPlan, Stop, Target
from bezel_bench.load.plan_rules import LoadError, check_load
from bezel_bench.prompts.media import WithMedia, png, size_of, wav
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.server.http_probe import asker
from bezel_bench.validity.checks import beginnings


def chunks(image: bytes) -> dict[bytes, bytes]:
    """The parts of a PNG, their checksums verified."""
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(image):
        (size,) = struct.unpack(">I", image[at : at + 4])
        name, data = image[at + 4 : at + 8], image[at + 8 : at + 8 + size]
        assert struct.unpack(">I", image[at + 8 + size : at + 12 + size]) == (zlib.crc32(name + data),)
        parts[name], at = data, at + 12 + size
    return parts


@pytest.mark.parametrize(("width", "height"), [(1, 1), (512, 512), (769, 33)])
def test_an_image_has_its_size_and_a_row_for_each_line(width: int, height: int) -> None:
    parts = chunks(png(width, height, 258))
    assert struct.unpack(">II", parts[b"IHDR"][:8]) == (width, height)
    assert len(zlib.decompress(parts[b"IDAT"])) == height * (1 + -(-width // 8))
    assert parts[b"PLTE"] == b"\x00\x01\x02" * 2
    assert list(parts)[-1] == b"IEND"


def test_audio_has_its_length_and_is_read_by_the_standard_library() -> None:
    noise = bytes(16_000 * 2)
    with wave.open(io.BytesIO(wav(0.5, 7, noise))) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (16_000, 1, 2)
        assert sound.getnframes() == 8_000
    assert wav(0.5, 7, noise) != wav(0.5, 8, noise)


class Texts:
    turns = 1

    def body(self, index: int, turn: int = 0) -> Body:
        text = f'{index} "content":" {turn}'
        fields = {"model": "m", "max_tokens": 3}
        head = json.dumps(fields)[:-1] + ', "messages": [{"role":"user","content":"'
        return Body(head.encode() + json.dumps(text)[1:-1].encode() + b'"}]}', 3)


def test_a_request_holds_its_text_after_its_images_and_audio() -> None:
    made = WithMedia(Texts(), 2, 8, 8, 0.01, bytes(320)).body(5)
    fields = json.loads(made.data)
    assert (fields["model"], fields["max_tokens"], made.asked_tokens) == ("m", 3, 3)
    (message,) = fields["messages"]
    assert [part["type"] for part in message["content"]] == ["image_url", "image_url", "input_audio", "text"]
    assert message["content"][-1]["text"] == '5 "content":" 0'
    urls = [part["image_url"]["url"] for part in message["content"][:2]]
    images = [base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls]
    assert [chunks(image)[b"PLTE"][2] for image in images] == [10, 11]
    assert message["content"][2]["input_audio"]["format"] == "wav"


def test_no_two_requests_have_one_image() -> None:
    bodies = WithMedia(Texts(), 3, 8, 8, 0.0, b"")
    urls = [
        part["image_url"]["url"]
        for index in range(20)
        for part in json.loads(bodies.body(index).data)["messages"][0]["content"]
        if part["type"] == "image_url"
    ]
    assert len(set(urls)) == 60


def test_generated_prompts_keep_the_length_of_their_text() -> None:
    with counting(TokenServer()) as server:
        target = Target(server.url, "m", public=True)
        plan = PromptPlan(input_tokens=64, output_tokens=5, run="r", images=1, image_size="16x8", audio_seconds=0.1)
        made = make_prompts(Load(target, Closed(1), Stop(requests=9), plan), asker(target, dict))
        message = json.loads(made.bodies.body(0).data)["messages"][0]
        text = message["content"][-1]["text"]
        assert len(server.count({"messages": [{"role": "user", "content": text}]})) == 64
    assert "each prompt has 1 images of 16x8 pixels and 0.1 s of audio beside its text" in made.notes[0]


def test_prompts_with_one_image_size_are_compared_by_their_text() -> None:
    bodies = WithMedia(Texts(), 1, 8, 8, 0.0, b"")
    assert beginnings(bodies, 3) == ['0 "content":" 0', '1 "content":" 0', '2 "content":" 0']


@pytest.mark.parametrize("text", ["512", "0x5", "axb", "9999x1", "-1x2", ""])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="WIDTHxHEIGHT"):
        size_of(text)


@pytest.mark.parametrize(
    ("plan", "endpoint", "message"),
    [
        (PromptPlan("multi_turn", turns=3, images=1), "chat", "leave out --turns"),
        (PromptPlan("file", file="f", audio_seconds=1.0), "chat", "leave out --turns"),
        (PromptPlan(images=1), "completions", "only the chat endpoint takes images"),
        (PromptPlan(images=-1), "chat", "--images = -1"),
        (PromptPlan(audio_seconds=1e9), "chat", "expected 0 to 600 seconds"),
    ],
)
def test_images_and_audio_that_cannot_be_sent_are_refused(plan: PromptPlan, endpoint: str, message: str) -> None:
    target = Target("http://127.0.0.1:1", "m", endpoint=endpoint)  # type: ignore[arg-type]
    with pytest.raises(LoadError, match=message):
        check_load(Load(target, Closed(1), Stop(requests=9), plan))
