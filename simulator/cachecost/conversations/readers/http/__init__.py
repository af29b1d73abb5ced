"""Reads recorded HTTP exchanges: HAR, VCR, mitmproxy, JSON of other recorders."""
