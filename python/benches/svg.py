"""Lines, texts and frames of the SVG pictures that benchmarks write into docs/img."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

INK, GREY, BLUE, ORANGE = "#1f2733", "#555f6e", "#145da0", "#d9731a"
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"


def polyline(points: Sequence[tuple[float, float]], color: str, width: float, dashes: str = "") -> str:
    """Return a line; of points with the same y in a row, the first and the last are drawn."""
    kept = []
    for _, run_of_points in groupby(points, key=lambda point: point[1]):
        same = list(run_of_points)
        kept += [same[0], same[-1]] if len(same) > 1 else same
    path = " ".join(f"{x:.2f},{y:.2f}" for x, y in kept)
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}" '
        f'stroke-linejoin="round" stroke-linecap="round"{dash}/>'
    )


def caption(x: float, y: float, text: str, *, size: int = 13, anchor: str = "start", color: str = INK) -> str:
    """Return a line of text."""
    weight = ' font-weight="600"' if size > 20 else ""
    position = f'x="{x:.2f}" y="{y:.2f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {position}{weight} fill="{color}">{text}</text>'


def dot(x: float, y: float, radius: float, color: str = "#263445", opacity: float = 1.0) -> str:
    """Return a filled circle."""
    return f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius}" fill="{color}" fill-opacity="{opacity}"/>'


@dataclass(frozen=True)
class Frame:
    """Size of a picture, place of the plot in it and the ranges of its axes."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    x_range: tuple[float, float] = (-1.0, 1.0)
    y_range: tuple[float, float] = (-1.0, 1.0)

    def pixels(self, x: float, y: float) -> tuple[float, float]:
        """Map a point of the plot to the picture."""
        (x_low, x_high), (y_low, y_high) = self.x_range, self.y_range
        return (
            self.left + (self.right - self.left) * (x - x_low) / (x_high - x_low),
            self.bottom - (self.bottom - self.top) * (y - y_low) / (y_high - y_low),
        )

    def axes(self, x_ticks: Sequence[float], y_ticks: Sequence[float], x_label: str, y_label: str) -> list[str]:
        """Return grid lines, their values and the labels of the axes."""
        parts = []
        for x in x_ticks:
            at = self.pixels(x, 0.0)[0]
            parts += [polyline([(at, self.top), (at, self.bottom)], "#e9ecf1", 1)]
            parts += [caption(at, self.bottom + 19, f"{x:g}", anchor="middle", color=GREY)]
        for y in y_ticks:
            at = self.pixels(0.0, y)[1]
            parts += [polyline([(self.left, at), (self.right, at)], "#e9ecf1", 1)]
            parts += [caption(self.left - 9, at + 4.5, f"{y:g}", anchor="end", color=GREY)]
        corners = [(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)]
        middle = ((self.left + self.right) / 2, (self.top + self.bottom) / 2)
        return [
            *parts,
            polyline(corners, "#b8bfca", 1.2),
            caption(middle[0], self.bottom + 42, x_label, size=14, anchor="middle", color=GREY),
            self._y_label(y_label, middle[1]),
        ]

    def _y_label(self, text: str, y: float) -> str:
        """Return the label of the vertical axis; words are turned."""
        label = caption(28, y, text, size=14, anchor="middle", color=GREY)
        if len(text) == 1:
            return label
        return f'<g transform="rotate(-90 28 {y:.2f})">{label}</g>'

    def picture(self, title: str, subtitle: str, parts: Sequence[str]) -> str:
        """Return a picture with a title and these parts."""
        size = f'width="{self.width}" height="{self.height}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {self.width} {self.height}" '
            f'font-family="{FONT}" role="img">',
            f"<title>{title}</title>",
            f'<rect {size} fill="#ffffff"/>',
            caption(self.left, 42, title, size=22),
            caption(self.left, 66, subtitle, size=14, color="#6b7686"),
        ]
        return "\n".join([*lines, *parts, "</svg>", ""])
