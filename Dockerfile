# One image for every process: `migrate`, `serve`, `worker` and the other commands of `threadmark`.
# Agents of your own: mount their folder at /agents and name them by THREADMARK_AGENTS.

FROM python:3.11-slim AS build
RUN pip install --no-cache-dir "uv>=0.9,<1"
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
WORKDIR /threadmark
# What is locked first: a change of the code does not install it again.
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-dev --no-install-project
COPY README.md LICENSE ./
COPY threadmark threadmark
COPY app app
COPY compaction compaction
COPY examples examples
COPY memory memory
COPY state state
COPY workers workers
RUN uv sync --frozen --no-dev --no-editable

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home threadmark && install --directory --mode 700 --owner threadmark /data /agents
COPY --from=build /threadmark/.venv /threadmark/.venv
ENV PATH=/threadmark/.venv/bin:$PATH PYTHONUNBUFFERED=1 THREADMARK_DATA_DIR=/data
WORKDIR /agents
USER threadmark
EXPOSE 8123
ENTRYPOINT ["threadmark"]
CMD ["serve"]
