"""The plugin processes: gRPC servers, property values, start-up."""
