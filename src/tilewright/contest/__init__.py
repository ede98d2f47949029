"""Engines that run the same model by turns, each in a process of its own, and what came of it."""
