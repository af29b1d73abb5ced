"""What a fixed structure of calls costs when only its times vary: many seeds at once, each the same alone."""

from cachecost.sweep.montecarlo.distribution import CostDistribution
from cachecost.sweep.montecarlo.draws import Draw, Retries, resample_pauses
from cachecost.sweep.montecarlo.many_seeds import montecarlo

__all__ = ["CostDistribution", "Draw", "Retries", "montecarlo", "resample_pauses"]
