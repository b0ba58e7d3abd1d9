"""Types of the services' arguments are those of the settings of a stack file."""

from __future__ import annotations

from bezel.planner.base.settings import Settings
from bezel_services.settings.types import LeasedServiceSettings, ServiceSettings
from tools.docs.planner.service_settings import OF_LEASES, PLACE, types_text


def test_types_are_generated_from_the_settings() -> None:
    written = PLACE.read_text(encoding="utf-8")
    assert written == types_text(), "run python -m tools.docs.planner.service_settings --write"


def test_every_setting_is_an_argument() -> None:
    assert set(LeasedServiceSettings.__annotations__) == set(Settings.model_fields)
    assert set(ServiceSettings.__annotations__) == set(Settings.model_fields) - set(OF_LEASES)
    required = {name for name, field in Settings.model_fields.items() if field.is_required()}
    assert ServiceSettings.__required_keys__ == required
