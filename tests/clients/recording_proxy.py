"""Stands between a client and a server, forwards everything unchanged, and records requests and answers."""

import http.client
import http.server
import json
import threading

HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "proxy-connection"}
TIMEOUT_S = 300


class Recorded:
    def __init__(self, method, path, body):
        self.method, self.path, self.body = method, path, body
        self.status, self.answer = None, b""

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        recorded = Recorded(self.command, self.path, body)
        self.server.recorded.append(recorded)
        upstream = http.client.HTTPConnection("localhost", self.server.upstream, timeout=TIMEOUT_S)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
        try:
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            recorded.status = answer.status
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_HEADERS:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while piece := answer.read1(65536):
                recorded.answer += piece
                self.wfile.write(piece)
                self.wfile.flush()
        except OSError:  # one end has closed
            pass
        finally:
            upstream.close()
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = pass_on


class RecordingProxy:
    """Use as a context manager."""

    def __init__(self, upstream):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.upstream, self.server.recorded = upstream, []
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    @property
    def recorded(self):
        return self.server.recorded

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
