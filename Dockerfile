# The gateway in a small image that runs as nobody in particular. Node runs the TypeScript sources as they are.
FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24-slim
ENV NODE_ENV=production HOST=0.0.0.0 NODE_COMPILE_CACHE=/app/.compile-cache
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY config ./config
COPY src ./src
# Compiled once here, so that the root file system can be read-only and the first start is as quick as the next.
RUN node src/cli/evalgate.js --version && node src/cli/evalgate.js openapi > /dev/null && chmod -R a+rX /app
USER node
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8081/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/cli/evalgate.js", "serve"]
