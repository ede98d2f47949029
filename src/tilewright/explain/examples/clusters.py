"""U05: measuring on more than one machine."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

FLEET = """
from tilewright.tuning.measure.cluster import Kind, Node
from tilewright.tuning.measure.fleet import Fleet

class OneNode:
    \"\"\"A cluster, as far as it is asked here.\"\"\"

    found = [Node("7f3a", "10.0.0.5", "znver4-0c41", processors=8)]

    def nodes(self):
        return self.found

    def open(self, worker, node):
        pass

    def end(self, worker):
        pass

cluster = OneNode()
fleet = Fleet(cluster, wait_s=0.05)
"""

EXAMPLES = (
    example(
        "U050",
        """Ray is no dependency of the compiler itself. Install the extra, or measure on this
        machine alone, which needs nothing.""",
        given="""
        import sys

        from tilewright.tuning.measure.runners import runner_named

        sys.modules["ray"] = None  # as where it is not installed
        """,
        wrong='runner_named("ray")',
        right='runner_named("local").close()',
        alone=True,
    ),
    example(
        "U051",
        """Nothing that is a Ray cluster answers at the address, or it does not accept the token of
        this machine. The address is that of the head (`HOST:PORT`, as `ray start --head` prints
        it); the machine on which the tuner runs must be a node itself, by
        `ray start --address=HOST:PORT`. Addresses of other kinds, `ray://…` and `auto`, are not
        taken. A cluster of this machine alone is not started where Ray was imported before: it
        would listen to other machines.""",
        given="from tilewright.tuning.measure.ray_connection import connect, require_tokens",
        wrong='connect("ray://10.0.0.5:10001")',
        right="""
        address = "10.0.0.5:6379"
        require_tokens(address, "token")  # then: connect(address)
        """,
    ),
    example(
        "U052",
        """Times of one processor say nothing about another. So a kernel is measured only on nodes
        whose fingerprint (processor, features, own caches) is that of its target, and which have a
        processor for each of its threads. No node is one of these: `found` says what there is, and
        why a node was not asked, for example since it has another version of tilewright.""",
        given=FLEET,
        wrong='fleet.require(Kind("graniterapids-77d0"))',
        right='fleet.require(Kind("znver4-0c41"))',
    ),
    example(
        "U053",
        """A search has the nodes on which it measures for itself, all processors of each. Others
        have all nodes with this processor, and nobody has given one back for as long as a runner
        waits (`wait_s`).""",
        given=FLEET,
        wrong="""
        import time
        fleet.require(Kind("znver4-0c41"))  # asks for the node
        time.sleep(0.1)  # somebody else has it
        fleet.require(Kind("znver4-0c41"))
        """,
        right="""
        fleet.require(Kind("znver4-0c41"))
        fleet.opened(0)  # the node is ours
        fleet.require(Kind("znver4-0c41"))
        """,
    ),
    example(
        "U054",
        """All workers with this processor have ended, with their processes or their nodes, and no
        other node has joined for as long as a runner waits (`wait_s`). Everything that was answered
        is kept; trials that were not are asked for again when the search goes on.""",
        given=FLEET,
        wrong="""
        import time
        fleet.require(Kind("znver4-0c41"))
        fleet.lost(0, "the node ended")
        cluster.found = []
        fleet.require(Kind("znver4-0c41"))
        time.sleep(0.1)
        fleet.require(Kind("znver4-0c41"))
        """,
        right="""
        fleet.require(Kind("znver4-0c41"))
        fleet.lost(0, "the node ended")
        fleet.require(Kind("znver4-0c41"))  # it is there again, and gets another worker
        """,
    ),
    example(
        "U055",
        """A runner is `local` (this machine), `ray` (this machine, by a Ray cluster that is started
        for it) or `ray:HOST:PORT` (a cluster that is there).""",
        given="from tilewright.tuning.measure.runners import runner_named",
        wrong='runner_named("cluster")',
        right='runner_named("local").close()',
    ),
    example(
        "U056",
        """Whoever is in a Ray cluster runs code on all its machines. Clusters on other machines are
        therefore spoken to only with tokens, which are on unless RAY_AUTH_MODE says otherwise.
        Tokens are no encryption: between machines, use a private network or TLS.""",
        given="from tilewright.tuning.measure.ray_connection import require_tokens",
        wrong='require_tokens("10.0.0.5:6379", auth_mode="disabled")',
        right='require_tokens("10.0.0.5:6379", auth_mode="token")',
    ),
)
