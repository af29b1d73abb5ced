"""Fixes: how calls would have been sent if what a finding names had been changed, each legal and known at the time."""
