"""The only code that touches a library's files."""
