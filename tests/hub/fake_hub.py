"""A hub with byte counters, on the loopback or another address, that can be told to misbehave. Files are served by
ranges, large ones behind a redirect to a second port that stands for another host. Nothing here sleeps longer than
`stall_s`."""

import hashlib
import http.server
import json
import socket
import struct
import threading
import urllib.parse

COMMIT = "c0ffee" + "0" * 34
HOLD_S = 60  # then a test has forgotten to release it
LARGE = 4096  # from this size a file is stored by its SHA-256, as the hub's large files are


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Faults:
    """The faults to simulate. Numbers count down: that many answers are spoiled, then all is well."""

    def __init__(self):
        self.status = None  # (status, headers): every answer
        self.statuses = []  # one for each answer with a file, then none
        self.truncate = 0  # bodies that end in the middle
        self.drop = 0  # connections that are reset before an answer
        self.flip = {}  # file -> answers of it with a flipped byte
        self.wrong_total = 0  # a Content-Range with another size of the file
        self.too_long = 0  # a body longer than the range
        self.no_ranges = False
        self.stall = 0  # answers that stall in the middle
        self.drip = None  # bytes at a time
        self.expire = 0  # answers 403 of the second host: its addresses are old
        self.expect_token = None
        self.redirect = None  # an address to redirect every request to
        self.list_change = None  # a function over the list's JSON
        self.gate = None  # an event before which no body gets past its half
        self.hold_at = None  # total body bytes; sending more waits for release(), and is cut off


class Hub:
    """Use as a context manager. `files` is {name: bytes} of one model, `repository`."""

    def __init__(self, files, repository="org/tiny", host="127.0.0.1"):
        self.host = host
        self.files = dict(files)
        self.repository = repository
        self.faults = Faults()
        self.lock = threading.Lock()
        self.released = threading.Condition(self.lock)
        self.reset_counters()
        self.stopped = threading.Event()
        self.front = self._serve(Front)
        self.storage = self._serve(Storage)
        self.url = f"http://{host}:{self.front.server_address[1]}"
        storage_host = "localhost" if host == "127.0.0.1" else host
        self.storage_url = f"http://{storage_host}:{self.storage.server_address[1]}"

    def _serve(self, handler):
        server = http.server.ThreadingHTTPServer((self.host, 0), type("Handler", (handler,), {"hub": self}))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def reset_counters(self):
        self.sent = {}  # file -> bytes of bodies
        self.begun = 0  # bytes of bodies, those that are being sent included
        self.ranges = []  # (file, begin, end) that were requested
        self.requests = []  # (host, path, Authorization or None)
        self.lists = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.stopped.set()
        for server in (self.front, self.storage):
            server.shutdown()
            server.server_close()

    def hold(self, count):
        """Waits if the next `count` bytes would be too many. Returns whether they are to be cut off."""
        with self.lock:
            if self.faults.hold_at is None or self.begun < self.faults.hold_at:
                self.begun += count
                return False
            self.released.wait_for(lambda: self.faults.hold_at is None, HOLD_S)
            return True

    def release(self):
        with self.lock:
            self.faults.hold_at = None
            self.released.notify_all()

    def total(self):
        return sum(len(content) for content in self.files.values())

    def sent_bytes(self):
        with self.lock:
            return sum(self.sent.values())

    def list(self):
        siblings = []
        for name, content in self.files.items():
            entry = {"rfilename": name, "size": len(content), "blobId": git_hash(content)}
            if len(content) >= LARGE:
                entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 135}
            siblings.append(entry)
        listed = {"id": self.repository, "sha": COMMIT, "siblings": siblings}
        if self.faults.list_change:
            self.faults.list_change(listed)
        return listed

    def take(self, name):
        """Counts one of the faults down; true while it is not over."""
        with self.lock:
            count = getattr(self.faults, name)
            setattr(self.faults, name, max(count - 1, 0))
            return count > 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub = None

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except (ConnectionError, socket.timeout):
            self.close_connection = True

    def answer(self, status, headers=None, body=b""):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def reset(self):
        """Ends the connection with RST."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def note(self, host):
        with self.hub.lock:
            self.hub.requests.append((host, self.path, self.headers.get("Authorization")))

    def serve_file(self, name):
        content = self.hub.files[name]
        begin, end = 0, len(content)
        asked = self.headers.get("Range")
        if asked and not self.hub.faults.no_ranges:
            first, last = asked.removeprefix("bytes=").split("-")
            begin, end = int(first), min(int(last) + 1, len(content))
        with self.hub.lock:
            self.hub.ranges.append((name, begin, end))
        body = bytearray(content[begin:end])
        with self.hub.lock:
            if self.hub.faults.flip.get(name, 0) > 0:
                self.hub.faults.flip[name] -= 1
                body[len(body) // 2] ^= 1
        if self.hub.take("too_long"):
            body += b"more than there is"
        total = len(content) + (1 if self.hub.take("wrong_total") else 0)
        self.send_response(206 if asked and not self.hub.faults.no_ranges else 200)
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{total}")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.end_headers()
        self.send_body(name, bytes(body))

    def send_body(self, name, body):
        half = len(body) // 2
        if self.hub.take("truncate"):
            self.send_part(name, body[:half])
            return self.reset_after_data()
        if self.hub.take("stall"):
            self.send_part(name, body[:half])
            self.hub.stopped.wait(30)
            self.close_connection = True
            return None
        if self.hub.faults.gate is not None:
            self.send_part(name, body[:half])
            self.hub.faults.gate.wait(30)
            body = body[half:]
        step = self.hub.faults.drip or len(body) or 1
        for i in range(0, len(body), step):
            self.send_part(name, body[i:i + step])
        return None

    def send_part(self, name, part):
        if self.hub.hold(len(part)):
            raise ConnectionAbortedError
        try:
            self.wfile.write(part)
            self.wfile.flush()
        except OSError:
            with self.hub.lock:
                self.hub.begun -= len(part)
            raise
        with self.hub.lock:
            self.hub.sent[name] = self.hub.sent.get(name, 0) + len(part)

    def reset_after_data(self):
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True


class Front(Handler):
    def do_GET(self):
        hub, faults = self.hub, self.hub.faults
        self.note("front")
        if hub.take("drop"):
            return self.reset()
        if faults.redirect:
            return self.answer(302, {"Location": faults.redirect})
        if faults.status:
            return self.answer(*faults.status)
        if faults.expect_token and self.headers.get("Authorization") != f"Bearer {faults.expect_token}":
            return self.answer(401, {"X-Error-Code": "GatedRepo"})
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        if path.startswith(f"/api/models/{hub.repository}/revision/"):
            if path.rsplit("/", 1)[1] not in ("main", COMMIT):
                return self.answer(404, {"X-Error-Code": "RevisionNotFound"})
            hub.lists += 1
            return self.answer(200, {"Content-Type": "application/json"}, json.dumps(hub.list()).encode())
        prefix = f"/{hub.repository}/resolve/{COMMIT}/"
        name = path.removeprefix(prefix)
        if not path.startswith(prefix) or name not in hub.files:
            return self.answer(404, {"X-Error-Code": "RepoNotFound"})
        with hub.lock:
            spoiled = faults.statuses.pop(0) if faults.statuses else None
        if spoiled:
            return self.answer(*spoiled)
        headers = {"X-Repo-Commit": COMMIT}
        if len(hub.files[name]) < LARGE:
            return self.serve_file(name)
        return self.answer(302, {**headers, "Location": f"{hub.storage_url}/{urllib.parse.quote(name)}?signed=1"})


class Storage(Handler):
    def do_GET(self):
        self.note("storage")
        if self.hub.take("expire"):
            return self.answer(403)
        return self.serve_file(urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)[1:])
