# infinimem as a server for MCP clients; the memory is in the volume /memory.
#
#   docker build -t infinimem .
#   docker run --rm -h memory -p 127.0.0.1:8321:8321 -v infinimem:/memory -e INFINIMEM_MCP_TOKEN \
#     infinimem mcp --http memory:8321 --remote
#   docker run --rm -i -v infinimem:/memory infinimem mcp

ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
COPY . /src
RUN python3 -m venv /opt/infinimem && /opt/infinimem/bin/pip install --no-cache-dir '/src[mcp]'

FROM ${PYTHON}
COPY --from=build /opt/infinimem /opt/infinimem
RUN useradd --uid 1000 --create-home infinimem && install -d -o infinimem /memory
ENV PATH=/opt/infinimem/bin:$PATH XDG_DATA_HOME=/memory
USER infinimem
VOLUME /memory
ENTRYPOINT ["infinimem"]
