# The gateway in a small image: what `npm pack` packs, the packages that it needs, and a user without privileges.
#   docker build --build-arg REVISION=$(git rev-parse HEAD) --tag evalgate .
# VERSION replaces the package's version in the label, for builds between releases.
# A tag can be moved, a digest cannot. To fix the base image, as the label base.digest then says:
#   docker build --build-arg NODE_DIGEST=sha256:... --tag evalgate .
# `docker buildx imagetools inspect node:24-slim` shows the digest.
ARG NODE_IMAGE=node:24-slim
ARG NODE_DIGEST=
ARG BASE=${NODE_IMAGE}${NODE_DIGEST:+@}${NODE_DIGEST}

FROM ${BASE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Source maps, TypeScript and browsers' bundles of packages are not needed at run time.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md tsconfig.json tsconfig.build.json ./
COPY .ci ./.ci
COPY config ./config
COPY docs ./docs
COPY deploy ./deploy
COPY src ./src
# `npm pack` runs `npm run build`.
RUN npm pack --silent && tar -xzf evalgate-*.tgz -C /app --strip-components=1
WORKDIR /app
# Compiled here, so that the root file system can be read-only and the first start is fast too. Node.js keeps this cache
# per user id: the later user creates it, then it belongs to root. cli/run.js is compiled by running it.
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache
RUN chmod -R a+rX . && install -d -o 1000 -g 1000 .compile-cache
USER 1000:1000
RUN node --input-type=module --eval "import { globSync } from 'node:fs'; for (const file of globSync('/app/dist/**/*.js')) if (!/swagger-ui|cli.run\.js/.test(file)) await import(file)" \
  && node src/cli/evalgate.js --help > /dev/null
USER 0:0
RUN chown -R 0:0 .compile-cache && chmod -R a+rX .compile-cache

FROM ${BASE}
ARG NODE_IMAGE NODE_DIGEST
ARG VERSION=0.4.0
ARG REVISION=
LABEL org.opencontainers.image.title="evalgate" \
  org.opencontainers.image.description="A read-through caching gateway in front of a store of sales-call coaching evaluations" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.base.name="${NODE_IMAGE}" \
  org.opencontainers.image.base.digest="${NODE_DIGEST}"
# The gateway needs Node.js and nothing that installs packages, which a scanner would find faults in.
RUN rm -rf /usr/local/lib/node_modules /opt/yarn-* \
  && rm -f /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache HOST=::
WORKDIR /app
# For commands in a running container: docker exec CONTAINER evalgate fleet
RUN ln -s /app/src/cli/evalgate.js /usr/local/bin/evalgate
# The layers that change least come first. All files belong to root, so the gateway's user cannot write them.
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/package.json /app/LICENSE /app/README.md /app/CHANGELOG.md /app/CONTRIBUTING.md /app/SECURITY.md ./
COPY --from=build /app/config ./config
COPY --from=build /app/docs ./docs
COPY --from=build /app/deploy ./deploy
# Only the launcher and the pages: the rest is compiled, in dist.
COPY --from=build /app/src ./src
COPY --from=build /app/dist ./dist
COPY --from=build /app/.compile-cache ./.compile-cache
# As a number, because orchestrators that refuse root cannot look up a name. It is the user "node" of the base image.
USER 1000:1000
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
# Whether the gateway is live, by its own configuration. Compose and Swarm use it; Kubernetes has probes instead. A busy
# gateway has ten seconds to answer.
HEALTHCHECK --interval=10s --timeout=12s --start-period=10s --retries=3 \
  CMD ["node", "/app/src/cli/evalgate.js", "health"]
ENTRYPOINT ["node", "/app/src/cli/evalgate.js"]
CMD ["serve"]
