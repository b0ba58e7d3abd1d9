"""Diagnosis of a deployed server: by rules, and as advice of the stack's own model beside them."""
