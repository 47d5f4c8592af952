# The evb program and its Python package: `docker build --tag evb .`
# The first stage builds both from the repository, the second one has only what runs.

FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3-venv
WORKDIR /evb
COPY . .
RUN cargo xtask deb && cargo xtask wheel

FROM debian:bookworm-slim
COPY --from=build /evb/target/packages/*.deb /evb/target/python/wheels/*.whl /packages/
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv /packages/*.deb \
    && rm -r /var/lib/apt/lists/* \
    && python3 -m venv /opt/evb \
    && /opt/evb/bin/pip install --no-cache-dir /packages/*.whl \
    && rm -r /packages
ENV PATH=/opt/evb/bin:$PATH
# Event files and records are written where the container is run: mount a folder there.
WORKDIR /data
ENTRYPOINT ["evb"]
