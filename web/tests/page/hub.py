"""The fake hub of tests/hub with one model of 32 MiB and a search, told over stdin what to do. Prints its address first.
Lines: hold BYTES (send no more than these in total), release."""

import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tests/hub"))
from fake_hub import Front, Hub  # noqa: E402

REPOSITORY = "org/tiny"
STORIES = os.path.join(os.path.dirname(__file__), "../../../models/stories260K")
BIG = 32 << 20  # four pieces of 8 MiB


class Searching(Front):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path != "/api/models":
            return super().do_GET()
        words = urllib.parse.parse_qs(url.query).get("search", [""])[0]
        found = [{"id": REPOSITORY, "downloads": 1234, "likes": 5, "lastModified": "2026-01-02T03:04:05.000Z", "gated": False}]
        return self.answer(200, {"Content-Type": "application/json"}, json.dumps(found if words in REPOSITORY else []).encode())


class SearchingHub(Hub):
    def _serve(self, handler):
        return super()._serve(Searching if handler is Front else handler)


def files():
    content = {}
    for name in os.listdir(STORIES):
        with open(os.path.join(STORIES, name), "rb") as file:
            content[name] = file.read()
    content["model-00002-of-00002.safetensors"] = os.urandom(BIG)
    return content


with SearchingHub(files(), REPOSITORY) as hub:
    print(json.dumps({"url": hub.url, "bytes": hub.total()}), flush=True)
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "hold":
            hub.faults.hold_at = int(rest[0])
        elif command == "release":
            hub.release()
    hub.release()
