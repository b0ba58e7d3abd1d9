"""Wire layer of all APIs: message definitions, field masks, paging, request log."""
