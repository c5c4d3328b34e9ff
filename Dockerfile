# The server in a container, from the lock file.
#   docker build -t xpredflow .                                   CPU
#   docker build -t xpredflow:cuda --build-arg TORCH=cu130 .      CUDA  (cu126: older GPUs)
#   docker run -p 8000:8000 -e XPREDFLOW_TOKEN=a-long-secret xpredflow --model tiny-aligned
FROM python:3.11-slim
ARG TORCH=cpu
WORKDIR /app

# torch first and from its own index: PyPI's would bring CUDA into the CPU image
COPY constraints.txt ./
RUN pip install --no-cache-dir --index-url "https://download.pytorch.org/whl/${TORCH}" \
    "$(grep '^torch==' constraints.txt)"
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt '.[serve]'

# no rights that serving does not need; checkpoints of the hub are kept in /models
RUN useradd --create-home --uid 10001 server && mkdir /models && chown server /models
USER server
ENV HF_HOME=/models PYTHONUNBUFFERED=1
VOLUME /models
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s CMD ["python", "-c", \
  "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
# SIGTERM, which docker stop sends, lets open requests finish
STOPSIGNAL SIGTERM
ENTRYPOINT ["xpredflow", "serve", "--host", "0.0.0.0", "--port", "8000"]
