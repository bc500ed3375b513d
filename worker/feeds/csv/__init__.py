"""A CSV file that grows, followed line by line."""
