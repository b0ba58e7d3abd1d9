"""The engine on the embedded cloud: its environment, and the `pulumi` of a shell that was pointed there."""
