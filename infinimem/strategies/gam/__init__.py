"""GAM: what is being said stands apart until its topic ends; then it is in a network."""
