"""Rules on bars without an account: what they would have made, and what a stop or target would have."""
