"""Policies of the pack; they have no configuration."""

from pulumi_policy import Policy

from bezel_policies.adapter import advice
from bezel_policies.price.rules import price_line

NAME = "price"
POLICIES: list[Policy] = advice(price_line)
