"""What a run asked a model, asked again: in other words, of another model, several times."""
