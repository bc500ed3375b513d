"""What is measured about decisions: worlds, tiers, models, prompts, plans and tables of trades."""
