"""Strategists and the plan provider that reflects whatever they propose."""
