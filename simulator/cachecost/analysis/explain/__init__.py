"""Why a log cost what it did: what each call lost, to which cause, and in dollars."""
