"""What a call lost, and why: `caches/losses.py`."""

from cachecost.caches.losses import CallInspection as CallInspection
from cachecost.caches.losses import Loss as Loss
