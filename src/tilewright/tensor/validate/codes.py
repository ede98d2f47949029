"""Error codes of validation."""

from tilewright.errors import Code

__all__ = ["V101", "V102", "V103", "V104", "V105", "V106", "V107", "V108", "V109", "V110"]

V101 = Code("V101", "the bindings of block `{block}` do not fill its domain independently")
V102 = Code("V102", "block `{block}` reduces over the {kind} loop `{loop}`")
V103 = Code("V103", "iterations of the parallel loop `{loop}` write the same part of `{buffer}`")
V104 = Code("V104", "block `{reader}` reads a part of `{buffer}` that is not ready there")
V105 = Code("V105", "`{variable}` is used where no loop around defines it")
V106 = Code("V106", "loop `{loop}` cannot run as lanes of a vector")
V107 = Code("V107", "block `{block}` adds to its result more than once for each point")
V108 = Code("V108", "the reduction of block `{block}` does not begin at zero")
V109 = Code("V109", "the parallel loop `{inner}` is inside the parallel loop `{outer}`")
V110 = Code("V110", "block `{block}` reads elements of `{buffer}` that its other iterations write")
