"""Report of a comparison: the differences that are not known ones, the gaps of the recordings, the counts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bezel_pulumi_offline.fidelity.comparison import Comparison
from bezel_pulumi_offline.fidelity.explanations import Compared, Explanations
from bezel_pulumi_offline.fidelity.recordings import read_recordings, short
from bezel_pulumi_offline.resources import TYPES


def compare(folder: Path) -> tuple[list[Compared], Explanations]:
    """Compare all recordings of a folder; return what was compared, and the known differences.

    Raises:
        RecordingsError: The folder has no recordings, or some that cannot be compared.
    """
    recordings = read_recordings(folder)
    for name in sorted(recordings.others):
        print(f"not compared, as the stand-in has no such type: {name}")
    explanations = Explanations.read()
    with Comparison(recordings, explanations.types_without_requests) as comparison:
        return list(comparison.everything()), explanations


def differences_without_explanation(compared: Sequence[Compared], explanations: Explanations) -> Iterator[str]:
    """A line for each difference that is not a known one."""
    for item in compared:
        for difference in explanations.explain(item):
            yield f"unexplained difference: {item.place}: {difference}"


def gaps(compared: Sequence[Compared], explanations: Explanations) -> Iterator[str]:
    """A line for each known difference that did not occur, and for each type without recordings that is not listed."""
    for line in explanations.unmet:
        yield f"explains nothing: {line}"
    for line in explanations.unrecorded_types({short(token) for token in TYPES}, compared):
        yield f"neither recorded nor explained, or both: {line}"


def summary(compared: Sequence[Compared]) -> Iterator[str]:
    """How many calls and requests were equal, and how many different."""
    counts = Counter((item.section, "different" if item.differences else "equal") for item in compared)
    for (section, how), count in sorted(counts.items()):
        yield f"{section}: {count} {how}"
