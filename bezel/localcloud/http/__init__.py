"""What every API shares on the wire: message definitions, field masks, paging, request log."""
