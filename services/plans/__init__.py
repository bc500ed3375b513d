"""Change plans: drafted from facts by value, decided by a person, carried out once."""
