"""Whether it is done yet."""
