"""Plugin processes: gRPC servers of the two providers, and a fast start-up."""
