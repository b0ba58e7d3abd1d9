"""Cloud Billing: the billing account, its budgets, and the public price list."""
