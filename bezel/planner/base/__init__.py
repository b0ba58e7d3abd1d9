"""Basics that every rule of the plan uses: settings, parsing, problems, names, money, quantities, hardware."""
