FROM node:24-slim AS build
WORKDIR /opt/latchkey
COPY package.json package-lock.json ./
COPY scripts scripts
COPY migrations migrations
COPY src src
RUN npm ci --no-audit --no-fund && npm prune --omit=dev

FROM node:24-slim
WORKDIR /opt/latchkey
COPY package.json config.example.json config.schema.json openapi.html openapi.json ./
COPY bin bin
COPY console console
COPY --from=build /opt/latchkey/node_modules node_modules
COPY --from=build /opt/latchkey/dist dist
RUN ln -s /opt/latchkey/bin/latchkey.js /usr/local/bin/latchkey && install -d -o node -g node /var/lib/latchkey
USER node
# The config, and beside it data/.
WORKDIR /var/lib/latchkey
VOLUME /var/lib/latchkey
ENV LATCHKEY_HOST=0.0.0.0
EXPOSE 4680
HEALTHCHECK --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:4680/healthz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=4", "/opt/latchkey/bin/latchkey.js", "serve"]
