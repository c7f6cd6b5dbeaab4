# CI does not test this file, and it has not been tried. The image is for compose.yaml. Its Caddy has not_found and
# caddy-docker-proxy, which makes a Caddyfile of labels.

FROM caddy:2.11.9-builder AS builder
RUN --mount=from=checkout,target=/src xcaddy build --with github.com/caddy-notfound/notfound=/src \
	--with github.com/lucaslorentz/caddy-docker-proxy/v2@v2.13.1

FROM caddy:2.11.9
COPY --from=builder /usr/bin/caddy /usr/bin/caddy
CMD ["caddy", "docker-proxy"]
