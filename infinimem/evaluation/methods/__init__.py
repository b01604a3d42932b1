"""What is compared: the project's own readers over one library, and baselines over the bare turns."""
