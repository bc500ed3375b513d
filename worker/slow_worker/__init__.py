"""The slow loop live: a waker that says "look", a runner that decides from facts, and what watches both."""
