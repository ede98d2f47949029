"""Windows of single channels (depthwise convolutions, pooling): two recipes, by what is contiguous.

* `channels`: channels lie innermost, vectors run along them;
* `lines`: places of a line lie innermost, vectors run along lines.

Each has a space (`…_space`), costs (`…_cycles`) and steps.
"""
