"""What every error means, with an example that is run: the source of docs/errors.md.

The examples are part of the package, and not of its documentation or its tests, so that
`tilewright explain V103` works wherever an error can be met. They are data; the package imports
nothing of the compiler, which the snippets import themselves when they are run.
"""

from tilewright.explain.example import Example
from tilewright.explain.examples import EXAMPLES
from tilewright.explain.pages import FAMILIES, page, section

__all__ = ["EXAMPLES", "FAMILIES", "Example", "page", "section"]
