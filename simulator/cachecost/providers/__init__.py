"""What each (host, model) does and charges: dated, sourced data files and one small loader each."""
