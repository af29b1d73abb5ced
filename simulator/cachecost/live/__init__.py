"""The network: a simulated API, a recorder between a client and the API, and the API itself."""
