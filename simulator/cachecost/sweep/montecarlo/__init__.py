"""What a fixed structure of calls costs when only its times vary: many seeds at once, each the same alone."""

from cachecost.sweep.montecarlo.distribution import Distribution
from cachecost.sweep.montecarlo.draws import Draw, Retries
from cachecost.sweep.montecarlo.resampling import resampled
from cachecost.sweep.montecarlo.run import montecarlo

__all__ = ["Distribution", "Draw", "Retries", "montecarlo", "resampled"]
