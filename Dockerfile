# The app on a CPU, as a user without rights: see docs/docker.md.
FROM python:3.11-slim-bookworm

# Numba and ONNX Runtime need OpenMP's library, which the slim image lacks.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 udml

WORKDIR /source
COPY requirements.txt requirements.lock ./
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock \
    && pip install --no-cache-dir --no-deps --index-url https://download.pytorch.org/whl/cpu \
       "$(grep '^torch==' requirements.txt)"
COPY . .
RUN pip install --no-cache-dir --no-deps . && rm -rf /source

USER udml
WORKDIR /home/udml
RUN mkdir runs cache
ENV UDML_RUNS=/home/udml/runs UDML_CACHE=/home/udml/cache UDML_DATA=/data UDML_EXPOSED=1 \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0
VOLUME ["/home/udml/runs", "/home/udml/cache"]
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
    CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"
CMD ["udml-explorer", "--no-browser", "--port", "8501"]
