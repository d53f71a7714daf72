"""HTTP as every service of the shop speaks it, with an end that breaks no request.

The directory of a service is all that its pods get, so each service carries this file.
"""

import http.client
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Response(NamedTuple):
    status: int
    content_type: str
    body: bytes
    headers: dict = {}


def json_response(value, status=200):
    return Response(status, "application/json", json.dumps(value).encode() + b"\n")


def not_found():
    return json_response({"error": "there is nothing here"}, 404)


class Server(ThreadingHTTPServer):
    daemon_threads = False  # closing the server waits for the requests under way
    request_queue_size = 128
    draining = False


class Handler(BaseHTTPRequestHandler):
    """Subclasses answer in `respond(method, path, body)`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 5  # seconds that a kept-alive connection may be idle

    def do_GET(self):
        self._answer()

    def do_POST(self):
        self._answer()

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            response = self.respond(self.command, self.path.partition("?")[0], body)
        except Exception as error:
            print(f"{self.command} {self.path}: {error!r}", file=sys.stderr, flush=True)
            response = json_response({"error": "something went wrong"}, 500)
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        if self.server.draining:
            # The client opens its next connection to a pod that stays; nothing is cut off in the middle.
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(response.body)

    def log_request(self, code="-", size="-"):
        if self.path != "/healthz":
            print(self.command, self.path, int(code), flush=True)

    def log_error(self, *_):
        """Clients that go away are no news."""


def serve(handler):
    """Serves on $PORT until SIGTERM, then finishes what is under way."""
    server = Server(("127.0.0.1", int(os.environ.get("PORT", "8080"))), handler)

    def drain(*_):
        server.draining = True
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, drain)
    signal.signal(signal.SIGINT, drain)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever(poll_interval=0.2)
    server.server_close()
    print("ended after the last request", flush=True)


def call(service, method, path, value=None):
    """Calls another service of the shop; returns its JSON."""
    prefix = service.upper()
    host, port = os.environ[f"{prefix}_SERVICE_HOST"], int(os.environ[f"{prefix}_SERVICE_PORT"])
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        body = None if value is None else json.dumps(value)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status >= 400:
            raise OSError(f"{service} answered {response.status} to {method} {path}")
        return json.loads(content)
    finally:
        connection.close()


def version(service, code, **more):
    """What `/version` tells: which code answers, in which pod and process, of which revision."""
    return {
        "service": service,
        "version": code,
        "pod": os.environ.get("POD_NAME", "by hand"),
        "process": os.getpid(),
        "revision": os.environ.get("LAUNCHWAY_REVISION", "unknown"),
        **more,
    }
