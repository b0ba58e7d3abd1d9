"""Images and audio beside the text of generated prompts: made here, of a given size, different for each request.

Pure. An image is a PNG of one colour, so its bytes are few and its size in pixels is what the server computes; audio is
a WAV of noise at 16 kHz, mono, 16 bits. Both are sent inside the request as OpenAI's chat endpoint takes them.
"""

import base64
import random
import re
import struct
import zlib
from dataclasses import dataclass

from bezel_base.errors import Problem, UserError
from bezel_bench.load.plan import Bodies, Body, PromptPlan

_RATE, _BYTES = 16_000, 2
_LARGEST_SIDE = 8192
_CONTENT, _END = b'"content":"', b'"}]}'


def png(width: int, height: int, number: int) -> bytes:
    """Return an image whose colour is the number, up to 16 million different ones."""
    rows = zlib.compress(bytes((width + 7) // 8 + 1) * height)
    header = struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)
    palette = (number % 2**24).to_bytes(3, "big") * 2
    parts = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def wav(seconds: float, number: int, noise: bytes) -> bytes:
    """Return audio of noise that begins with the number."""
    samples = (struct.pack(">Q", number) + noise)[: round(seconds * _RATE) * _BYTES]
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, _RATE, _RATE * _BYTES, _BYTES, 8 * _BYTES)
    data = struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data


@dataclass(frozen=True)
class WithMedia:
    """Requests of one text each, with images and audio before it."""

    bodies: Bodies
    images: int
    width: int
    height: int
    audio_seconds: float
    noise: bytes
    turns: int = 1

    def body(self, index: int, turn: int = 0) -> Body:
        """Return the request of that number with its images and audio."""
        made = self.bodies.body(index, turn)
        parts = [
            b'{"type":"image_url","image_url":{"url":"data:image/png;base64,%b"}}'
            % base64.b64encode(png(self.width, self.height, index * self.images + number))
            for number in range(self.images)
        ]
        if self.audio_seconds:
            sound = base64.b64encode(wav(self.audio_seconds, index, self.noise))
            parts.append(b'{"type":"input_audio","input_audio":{"data":"%b","format":"wav"}}' % sound)
        before, _, text = made.data.rpartition(_CONTENT)
        content = b'"content":[%b,{"type":"text","text":"%b"}]}]}' % (b",".join(parts), text.removesuffix(_END))
        return made._replace(data=before + content)


def size_of(text: str) -> tuple[int, int]:
    """Return width and height in pixels of "WIDTHxHEIGHT".

    Raises:
        UserError: It is no such size.
    """
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    sides = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(1 <= side <= _LARGEST_SIDE for side in sides):
        consequence = f"expected pixels as WIDTHxHEIGHT, up to {_LARGEST_SIDE} each."
        raise UserError(Problem("--image-size", text, consequence, "write e.g. 512x512."))
    return sides


def with_media(bodies: Bodies, plan: PromptPlan) -> Bodies:
    """Return the bodies with the plan's images and audio; of a chat with one text a request.

    Raises:
        UserError: The images' size is none.
    """
    width, height = size_of(plan.image_size)
    dice = random.Random(f"{plan.seed}/{plan.run}/audio")  # noqa: S311 - noise, no secrets
    noise = dice.randbytes(round(plan.audio_seconds * _RATE) * _BYTES)
    return WithMedia(bodies, plan.images, width, height, plan.audio_seconds, noise)
