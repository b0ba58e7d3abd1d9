"""Text of a model's answer made fit to be shown as it grows, however it is cut into pieces."""
