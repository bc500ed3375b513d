"""From bars as they arrive to rows as they are traded: pure, with time as an argument; feeds drive it."""
