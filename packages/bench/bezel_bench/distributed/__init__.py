"""A load sent by several machines: protocol, worker, merge of the parts."""
