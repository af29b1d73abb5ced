"""`python -m cachecost.tokens.calibrate LOG…`: fit ratios and structure constants on bills, and measure them."""
