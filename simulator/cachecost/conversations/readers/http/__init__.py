"""Reads recorded HTTP exchanges: HAR, VCR, mitmproxy."""
