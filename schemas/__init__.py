"""Contracts: frozen models, enums and errors that every room shares. Imports nothing of ours."""
