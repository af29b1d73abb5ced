"""What ledgers and bills tell: predicted against billed, and later why and what would be best."""
