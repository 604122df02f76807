# The gateway in a small image: Node.js runs the TypeScript sources as they are, as a user without privileges.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Source maps and type declarations are of no use at run time and are over a third of what is installed.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
COPY LICENSE ./
COPY config ./config
COPY src ./src
# Compiled here, so that the root file system can be read-only and the first start is as quick as the next. Node.js keeps
# such a cache for each user id and to that user alone: the one that runs later makes it, then it becomes the image's.
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache
RUN chmod -R a+rX . && install -d -o 1000 -g 1000 .compile-cache
USER 1000:1000
RUN node --eval "import('/app/src/run-worker.ts').then(() => import('/app/src/supervise.ts'))" && node src/cli/evalgate.js openapi > /dev/null
USER 0:0
RUN chown -R 0:0 .compile-cache && chmod -R a+rX .compile-cache

FROM node:24-slim
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache HOST=0.0.0.0
WORKDIR /app
RUN ln -s /app/src/cli/evalgate.js /usr/local/bin/evalgate
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/package.json /app/LICENSE ./
COPY --from=build /app/config ./config
COPY --from=build /app/src ./src
COPY --from=build /app/.compile-cache ./.compile-cache
# In numbers, since orchestrators that refuse root can't look a name up. It is the user "node" of the base image.
USER 1000:1000
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 \
  CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 8081}/readyz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/cli/evalgate.js", "serve"]
