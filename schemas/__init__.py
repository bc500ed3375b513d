"""Contracts: frozen pydantic models, closed enums and the error tree. Imports nothing of ours."""
