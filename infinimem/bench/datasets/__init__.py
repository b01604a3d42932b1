"""Public data sets, read as their official files are, each with its own rules of scoring."""
