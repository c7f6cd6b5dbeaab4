# Varnish in front of an application. In place of each 404, it asks the Caddy of the Caddyfile beside this file for a
# page. A test runs this file.
#
# Varnish replaces every 404 of the application, whatever its type. For an API that has JSON errors, add the condition
# `&& req.url !~ "^/api/"` in vcl_deliver.
vcl 4.1;

backend application {
	.host = "127.0.0.1";
	.port = "9000";
}
backend not_found {
	.host = "127.0.0.1";
	.port = "8081";
}

sub vcl_recv {
	if (req.restarts > 0) {
		set req.backend_hint = not_found;

		# The application has read the body of the request. With the length of that body, Caddy would wait for another.
		unset req.http.Content-Length;
		return (pass);
	}
	set req.backend_hint = application;

	# These fields are the visitor's address before any rewrite in Varnish. A client may send them, too, so Varnish sets or
	# removes each of them. If TLS ends in front of Varnish, write https.
	set req.http.X-Original-URI = req.url;
	unset req.http.X-Forwarded-Host;
	set req.http.X-Forwarded-Proto = "http";
}

sub vcl_deliver {
	# `return (retry)` in vcl_backend_response would make a 503 of a POST, whose body is used up. A fragment of ESI that is
	# missing stays as it is.
	if (resp.status == 404 && req.restarts == 0 && req.esi_level == 0) {
		return (restart);
	}
}
