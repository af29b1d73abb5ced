"""The files that `cachecost init` writes into a project; the session is made up."""
