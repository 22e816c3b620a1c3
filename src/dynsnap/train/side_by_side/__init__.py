"""Many rounds at once on one GPU."""
