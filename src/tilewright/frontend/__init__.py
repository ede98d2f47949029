"""Frontends: models of other tools become graphs."""
