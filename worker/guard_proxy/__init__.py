"""A proxy of the Model Context Protocol that holds the orders for a broker behind the guard."""
