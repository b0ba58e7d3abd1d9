"""Commands of `localcloud`, which `bezel local` has too: serve, start, stop, status, env, token, fault, reset."""
