"""Code without domain knowledge: structs, errors, formatting, files, times, input limits."""
