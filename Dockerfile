# The program with every package at the version and hash of requirements.lock.txt; it runs as a plain user.
FROM python:3.11-slim

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1 \
    THINKTWICE_CACHE_DIR=/var/cache/thinktwice

WORKDIR /source
COPY requirements.lock.txt requirements.build.txt ./
RUN pip install --require-hashes -r requirements.lock.txt
RUN pip install --require-hashes -r requirements.build.txt

COPY pyproject.toml hatch_build.py README.md ./
COPY thinktwice thinktwice
COPY schemas schemas
COPY trading_core trading_core
COPY services services
COPY agents agents
COPY prompts prompts
COPY worker worker
RUN pip install --no-deps --no-build-isolation .
RUN useradd --create-home --uid 10001 thinktwice && install --directory --owner=thinktwice /var/cache/thinktwice

USER thinktwice
WORKDIR /home/thinktwice
# Compiled once here, by the user who runs it, and not by every fresh container.
RUN python -c "from thinktwice.worker.runs.warm_up import compile_engine; compile_engine()"
ENTRYPOINT ["thinktwice"]
CMD ["--help"]
