"""Why calls paid again: one table of causes for every command. What each call paid comes here later."""
