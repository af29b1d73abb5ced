"""A recorder between a client and the API: forwards every byte as it comes, and records each call afterwards.

It changes only hop-by-hop headers, `host`, and what has no meaning in HTTP: the case of a request's header names, the
reason phrase, a `?` with nothing after it, and the chunks of a body. The server is uvicorn with h11 and a plain ASGI
application, upstream is httpx2's transport without its client, so that nothing follows redirects, stores cookies,
reads proxy settings or adds headers (except that of `proxy.py`, which the API never receives).

A thread writes a call's line after its last byte has been forwarded, so that no byte waits for a file. Killing the
recorder therefore loses the calls that are in flight or ended a few milliseconds ago. Predictions are made in another
process, which reads the log; without content, that process writes the file and reports which calls it has written. A
call counts as recorded if it is in the file at the end.
"""
