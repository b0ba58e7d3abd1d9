"""The plugin of dynamic resources: the server of Pulumi's SDK, which serves only the user that started it."""
