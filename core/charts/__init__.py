"""Charts: one declaration, drawn once to SVG, the same in page and PDF. No JavaScript, no network.

Vega-Altair declares, vl-convert draws. A drawing is kept in the cache under a hash of everything that it depends on, so
that a page pays for a drawing once. Every chart carries its title, a description and its figures as a table: whoever
cannot see or read the drawing loses nothing.

Values are plain numbers in the unit that the axis label names. None is a gap, never zero; NaN and infinity are refused.
"""

from core.charts.comparisons import bars, scatter, tornado
from core.charts.courses import areas, gantt, lines
from core.charts.drawing import Chart

__all__ = ["Chart", "areas", "bars", "gantt", "lines", "scatter", "tornado"]
