"""What people do to a library as a whole: look back, undo, review, forget, check."""
