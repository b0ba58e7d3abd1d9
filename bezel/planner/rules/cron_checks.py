"""Checks of the times in a stack file: cron schedules of five fields, and the time zone that they are in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bezel_base.cron import CronError, parse_cron, time_zone
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def check_times(key: str, zone_name: str, crons: Mapping[str, str]) -> Iterator[Problem]:
    """Refuse what is no time zone or no schedule, and schedules that never occur.

    Args:
        key: Setting that holds them; `KEY.time_zone` is the zone's.
        zone_name: Time zone of the tz database.
        crons: Name of each schedule below the key -> its text.
    """
    try:
        zone = time_zone(zone_name)
    except CronError as error:
        yield Problem(f"{key}.time_zone", zone_name, f"{error}.", "write e.g. Europe/Berlin, or UTC.")
        zone = time_zone("UTC")
    for name, text in crons.items():
        try:
            never = parse_cron(text).after(datetime.now(UTC), zone) is None
        except CronError as error:
            yield Problem(f"{key}.{name}", text, f"{error}.", "write e.g. 0 8 * * 1-5, weekdays at eight.")
        else:
            if never:
                yield Problem(f"{key}.{name}", text, "it never occurs.", "correct day and month.")
