"""What a fixed structure of calls costs when only its times vary: many seeds at once, each the same alone."""

from cachecost.analysis.montecarlo.distribution import Distribution
from cachecost.analysis.montecarlo.draws import Draw, Retries
from cachecost.analysis.montecarlo.many import montecarlo
from cachecost.analysis.montecarlo.resampling import resampled

__all__ = ["Distribution", "Draw", "Retries", "montecarlo", "resampled"]
