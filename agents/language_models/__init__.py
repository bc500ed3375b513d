"""Adapters of language models behind `services.ports.LanguageModel`; one file for each provider."""
