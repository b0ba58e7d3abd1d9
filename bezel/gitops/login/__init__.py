"""Login of a forge job: its identity token becomes credentials of a Google account, and each refusal a repair."""
