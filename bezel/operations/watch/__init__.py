"""Page about a running stack: what it does and costs at the moment, on one screen."""
