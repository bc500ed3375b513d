"""What is measured about decisions: tiers, models, prompts, plans and tables of trades."""
