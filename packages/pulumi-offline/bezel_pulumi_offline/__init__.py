"""Stand-in Pulumi providers: `gcp` for localcloud's REST interfaces and `docker` for its registry look-up.

They implement the engine's own protocol (pulumirpc.ResourceProvider) over Google's REST APIs, so that the unchanged
program runs on a machine where the published plugins cannot be installed. They are not providers for Google itself:
they send plain HTTP to the endpoints named in GOOGLE_<API>_CUSTOM_ENDPOINT and have no default for one.
"""
