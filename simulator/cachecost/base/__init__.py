"""What has nothing of the domain in it: structs, errors, formatting, files, times, limits of input."""
