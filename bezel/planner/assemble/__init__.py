"""Plans: settings validated by every rule, then built into a Plan or LeasePlan."""
