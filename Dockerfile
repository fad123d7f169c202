# transformer_mt in a container, for CPUs or for NVIDIA GPUs.
#
#   docker build --target cpu --tag tmt .
#   docker run --rm -it -v "$PWD:/data" --user "$(id -u):$(id -g)" tmt train --config my.yaml
#
#   docker build --target cuda --tag tmt:cuda .
#   docker run --rm -it --gpus all -v "$PWD:/data" --user "$(id -u):$(id -g)" tmt:cuda train --config my.yaml
#
# Configs, corpora and runs are files of /data. The versions are those of scripts/constraints.txt.

FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/tmt
ENV PATH=/opt/tmt/bin:$PATH
WORKDIR /src
COPY scripts/constraints.txt scripts/constraints.txt

FROM build AS build-cpu
# hadolint ignore=DL3013
RUN pip install --index-url https://download.pytorch.org/whl/cpu --extra-index-url https://pypi.org/simple \
      --constraint scripts/constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY transformer_mt transformer_mt
RUN pip install --constraint scripts/constraints.txt ".[ctranslate2,serve,zstd]"

FROM build AS build-cuda
# hadolint ignore=DL3013
RUN pip install --constraint scripts/constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY transformer_mt transformer_mt
RUN pip install --constraint scripts/constraints.txt ".[ctranslate2,serve,zstd]"

FROM python:3.11-slim-bookworm AS base
ENV PATH=/opt/tmt/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1
RUN useradd --no-create-home --uid 1000 tmt && install --directory --owner tmt /data
WORKDIR /data
USER 1000
ENTRYPOINT ["tmt"]
CMD ["--help"]

# The drivers come from the host (--gpus all); the CUDA libraries with torch.
FROM base AS cuda
COPY --from=build-cuda /opt/tmt /opt/tmt

FROM base AS cpu
COPY --from=build-cpu /opt/tmt /opt/tmt
