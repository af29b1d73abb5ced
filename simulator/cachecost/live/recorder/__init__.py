"""A recorder between a client and the API: passes every byte on as it comes, and writes each call down afterwards.

What is passed on differs from what came in its hop-by-hop headers and `host`, and in what HTTP says means nothing: the
case of a request's header names, the reason phrase, a `?` with nothing after it, how a body is cut into chunks. The
server is uvicorn with h11 and a plain ASGI application, upstream is httpx2's transport without its client: nothing in
between follows a redirect, keeps a cookie, asks the environment for a proxy, or adds a header (but for the one in
own_calls.py, which the API never gets).

A call's line is written after its last byte has been passed on, by a thread of its own, so that no byte waits for a
file. Whoever kills the recorder therefore loses the calls that are in flight, and those whose end is a few
milliseconds ago. Predictions are made in another process, which reads the log; without content it is that process
that writes the file, and tells which calls it has written. What counts as recorded is what is in the file at the end.
"""
