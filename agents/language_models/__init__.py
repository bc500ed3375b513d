"""Adapters of language models behind the port of `services.model_calls`; one file for each provider."""
