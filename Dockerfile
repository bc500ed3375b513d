# The program with every package at the version and hash of requirements.lock.txt; it runs as a plain user.
FROM python:3.11-slim

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/tmp/numba

WORKDIR /source
COPY requirements.lock.txt ./
RUN pip install --require-hashes -r requirements.lock.txt

COPY pyproject.toml README.md ./
COPY schemas schemas
COPY trading_core trading_core
COPY services services
COPY agents agents
COPY prompts prompts
COPY worker worker
RUN pip install --no-deps . && useradd --create-home --uid 10001 thinktwice

USER thinktwice
WORKDIR /home/thinktwice
ENTRYPOINT ["thinktwice"]
CMD ["--help"]
