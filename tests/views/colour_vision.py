"""How far colours are apart, for full and for colour-blind sight (Machado, Oliveira and Fernandes 2009, severity 1)."""

from __future__ import annotations

SIGHTS = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
    "grey": ((0.2126, 0.7152, 0.0722),) * 3,
}


def difference(one: str, other: str, sight: str) -> float:
    """CIE76 distance of two colours like "#aabbcc" as seen by `sight`; about 2 can just be told apart."""
    pairs = zip(_lab(one, sight), _lab(other, sight), strict=True)
    return float(sum((left - right) ** 2 for left, right in pairs) ** 0.5)


def _lab(colour: str, sight: str) -> tuple[float, float, float]:
    linear = [_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5)]
    red, green, blue = (_mix(row, linear) for row in SIGHTS[sight])
    x = _curve((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505)
    y = _curve(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    z = _curve((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _mix(row: tuple[float, ...], linear: list[float]) -> float:
    return min(max(sum(weight * part for weight, part in zip(row, linear, strict=True)), 0), 1)


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _curve(part: float) -> float:
    return float(part ** (1 / 3)) if part > 0.008856 else 7.787 * part + 16 / 116
