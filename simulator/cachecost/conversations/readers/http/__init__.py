"""One recorded HTTP exchange, whoever recorded it."""
