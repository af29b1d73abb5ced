"""Reads the tasks of Cline, Roo Code and Kilo Code, and the sessions of Cline's SDK."""
