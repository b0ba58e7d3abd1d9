"""Numbers with their noun."""


def count(number: int, noun: str) -> str:
    """E.g. "1 user", "2,048 users"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
