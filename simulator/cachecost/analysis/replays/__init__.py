"""Replays of calls as they would have been sent: with other content, breakpoints, TTLs, times, and with extra calls."""
