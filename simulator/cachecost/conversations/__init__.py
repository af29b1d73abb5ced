"""Who said what when, before any strategy."""
