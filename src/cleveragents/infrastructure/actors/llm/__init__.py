"""The actor that asks a language model."""
