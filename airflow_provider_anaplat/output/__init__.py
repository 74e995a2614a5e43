"""How a file or an object is written."""
