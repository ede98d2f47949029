"""Arrays for a run of a model of which only the signature is known: given, or made up to fit."""
