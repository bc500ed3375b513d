"""The guard: checks in front of the orders of somebody's agent, journalled before it may act on them."""
