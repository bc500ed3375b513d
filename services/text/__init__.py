"""What a text says, by rules and with the place of each word: sentences, claims and dates."""
