# Not built by a daemon yet: the packages and the installed program of the second stage were extracted by mmdebstrap and run by user
# 1000 (86 MB on disk).
# specsim in a container: docker build -t specsim . && docker run --rm -v "$PWD:/work" specsim check configs/quickstart.yaml
# With --out, run it as the user whose folder is mounted: docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" specsim ...
# .git is not copied: the program's commit is then a checksum of its sources.
FROM debian:12-slim AS build
WORKDIR /source
COPY scripts/setup scripts/build scripts/
RUN scripts/setup && rm -rf /var/lib/apt/lists/*
COPY . .
RUN scripts/build build -DBUILD_TESTING=OFF -DSPECSIM_CUDA=OFF \
 && cmake --install build --prefix /usr/local --strip \
 && rm -rf /usr/local/lib/libspecsim.a /usr/local/include/specsim /usr/local/lib/cmake/specsim

# The program and the libraries that it is linked with: no compiler, no Python (plot and cluster want one, and say so).
FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends libboost-program-options1.74.0 libfmt9 libyaml-cpp0.7 libhwy1 libsentencepiece0 libutf8proc2 liblzma5 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 specsim
COPY --from=build /usr/local /usr/local
USER specsim
WORKDIR /work
ENTRYPOINT ["specsim"]
CMD ["help"]
