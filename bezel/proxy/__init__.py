"""Local proxy of a service that authenticates its callers: adds the identity token, passes streams on unbuffered."""
