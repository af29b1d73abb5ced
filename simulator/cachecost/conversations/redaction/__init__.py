"""Names, keys and e-mail addresses out of recordings whose content is kept."""
