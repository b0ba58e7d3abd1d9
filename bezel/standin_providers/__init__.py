"""The stand-in Pulumi providers: `gcp` for localcloud's REST interfaces and `docker` for its registry look-up.

They speak the engine's own protocol (pulumirpc.ResourceProvider) and Google's REST, so that the unchanged program runs
on a machine where the published plugins cannot be installed. What they are not: providers for Google itself. They talk
plain HTTP to the endpoints named in GOOGLE_<API>_CUSTOM_ENDPOINT and refuse to guess one.
"""
