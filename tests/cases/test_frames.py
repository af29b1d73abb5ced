"""The columns of frames that a notebook computes with."""

from __future__ import annotations

from pathlib import Path

import cachecost


def test_the_dollars_of_a_frame_can_be_scaled_and_sorted() -> None:
    folder = Path(__file__).parent / "data" / "42-many-pauses" / "home"
    frame = cachecost.bill(str(folder)).frame()
    assert frame["cost_usd"].dtype == "float64"
    assert str(frame["first"].dtype) == "datetime64[ns, UTC]"
    assert (frame["cost_usd"] * 0.9).nlargest(1).tolist() == [frame["cost_usd"].max() * 0.9]
