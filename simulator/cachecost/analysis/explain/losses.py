"""What a call lost, and why: `caches/losses.py` and `caches/inspection.py`."""

from cachecost.caches.inspection import CallInspection as CallInspection
from cachecost.caches.losses import Loss as Loss
