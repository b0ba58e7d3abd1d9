"""The catalogue as operations show it: the facts that plans use."""
