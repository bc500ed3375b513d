"""Where bars come from: files, the embedded sample, generated worlds and exchanges."""
