# An image that runs `cachecost`, with the extra `server`: no compiler and no pip, not root, and it works with
# `--read-only --network none`. docs/how-to/install.md says how to build and run it.
ARG PYTHON=3.14

FROM docker.io/library/python:${PYTHON}-slim AS build
WORKDIR /source
COPY requirements-build.lock requirements-server.lock ./
# Versions and hashes are those of the lock files; pip stays in /build.
RUN python -m venv /build \
    && /build/bin/pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes -r requirements-build.lock \
    && python -m venv --without-pip /opt/cachecost \
    && /build/bin/pip --python /opt/cachecost/bin/python install --no-cache-dir --no-deps --only-binary :all: \
        --require-hashes -r requirements-server.lock
COPY . .
RUN /build/bin/pip --python /build/bin/python wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /build/bin/pip --python /opt/cachecost/bin/python install --no-deps --no-index /wheel/*.whl

FROM docker.io/library/python:${PYTHON}-slim
LABEL org.opencontainers.image.title="cachecost" \
    org.opencontainers.image.description="What does LLM prompt caching cost? A deterministic simulator and analysis toolkit." \
    org.opencontainers.image.licenses="MIT"
RUN python -m pip uninstall --quiet --yes --root-user-action=ignore pip && mkdir -p /work /home/cachecost
COPY --from=build /opt/cachecost /opt/cachecost
ENV PATH=/opt/cachecost/bin:$PATH HOME=/home/cachecost PYTHONDONTWRITEBYTECODE=1
WORKDIR /work
USER 10001:10001
ENTRYPOINT ["cachecost"]
CMD ["--help"]
