"""Which earlier call a call continues: `caches/lineage.py`."""

from cachecost.caches.lineage import EarlierCall as EarlierCall
from cachecost.caches.lineage import Lineage as Lineage
