"""HTTP/1.1 of the door: requests read strictly, responses of the server read, connections on both sides."""
