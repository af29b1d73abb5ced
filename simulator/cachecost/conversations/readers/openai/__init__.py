"""OpenAI's bodies and answers, put into the words of the Messages API."""
