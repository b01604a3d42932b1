"""`git = true`: each receipt is one commit of the program's own files. It never fails a write."""
