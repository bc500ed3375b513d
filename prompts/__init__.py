"""Text templates of the model calls and their content-hashed loader."""
