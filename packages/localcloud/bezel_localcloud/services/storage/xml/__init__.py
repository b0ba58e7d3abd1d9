"""Cloud Storage's XML API: objects by path, lists, multipart uploads, signed URLs and forms."""
