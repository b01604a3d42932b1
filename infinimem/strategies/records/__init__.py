"""Records: what every system shares that keeps whole files with a header instead of signed lines."""
