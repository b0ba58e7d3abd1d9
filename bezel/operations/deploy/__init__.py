"""Deploy of a stack: its plan, and exactly that carried out."""
