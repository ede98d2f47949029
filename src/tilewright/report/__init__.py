"""A page about the tuning of a model: what was tried for its kernels, and what came of it.

`data.py` gathers it from a database of records and the model's plan, `page.py` writes it as one
HTML file that needs nothing else: no script, no font, no network.
"""
