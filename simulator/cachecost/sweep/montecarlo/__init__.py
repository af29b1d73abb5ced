"""What a fixed structure of calls costs when only its times vary: many seeds at once, each the same alone."""

from cachecost.sweep.montecarlo.distribution import Distribution
from cachecost.sweep.montecarlo.draws import Draw, Retries
from cachecost.sweep.montecarlo.run import montecarlo
from cachecost.sweep.montecarlo.times import resampled

__all__ = ["Distribution", "Draw", "Retries", "montecarlo", "resampled"]
