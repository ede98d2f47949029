"""The points of both recipes for windows."""

from __future__ import annotations

from tilewright.schedule.recipes.windows.channel_space import ChannelPoint
from tilewright.schedule.recipes.windows.line_space import LinePoint

__all__ = ["WindowPoint"]

WindowPoint = ChannelPoint | LinePoint
