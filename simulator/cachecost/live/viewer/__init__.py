"""The server of `cachecost view`: a page on this machine to look around sessions."""
