"""Objects: metadata, generations, retention, lists, downloads, and the methods on them."""
