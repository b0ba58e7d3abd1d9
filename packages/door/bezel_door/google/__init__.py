"""Google's interfaces that the door calls: tokens of the metadata server, objects of Cloud Storage."""
