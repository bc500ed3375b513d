"""What happens around a call of a language model: who asks, what is recorded, what it may cost."""
