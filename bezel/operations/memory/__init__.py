"""Memory of a server's accelerator: as the server reports it, beside the plan's fit."""
