"""How many random examples a property gets."""

from __future__ import annotations

import hypothesis


def examples(count: int) -> hypothesis.settings:
    """So many in the quick profile, because each is slow or quick; in the long one, all of them."""
    is_long = hypothesis.settings.get_current_profile_name() == "long"
    return hypothesis.settings() if is_long else hypothesis.settings(max_examples=count)
