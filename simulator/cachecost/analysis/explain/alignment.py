"""The comparison of prompts is that of `caches/alignment.py`."""

from cachecost.caches.alignment import common as common
from cachecost.caches.alignment import first_difference as first_difference
from cachecost.caches.alignment import path as path
from cachecost.caches.alignment import text_of as text_of
