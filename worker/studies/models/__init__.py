"""Models and prompts compared on the same questions."""
