"""Known faults planted into right plans, and which of the checks stops each."""
