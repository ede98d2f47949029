"""The text of programs: names, expressions, and the pieces behind `printer.py` and `parser.py`."""
