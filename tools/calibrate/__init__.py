"""`python -m tools.calibrate LOG…`: fit ratios and structure constants on bills, and measure them."""
