"""The packages of npm that the web page carries, with their licenses; the others only compile it.

  page_parts.py WEB OUTPUT     writes the license texts of what WEB/node_modules has into one file, which is installed

tools/sbom.py lists them, and tests/packaging/page_test.py compares them with what the compiler reads."""

import base64
import json
import pathlib
import sys

# svelte brings clsx and esm-env.
CARRIED = ["clsx", "esm-env", "highlight.js", "marked", "svelte", "temml"]
LICENSE_NAMES = {"license", "license.md", "license.txt"}


def parts(web):
    """[{name, version, license, sha512}] as the lock file has them."""
    packages = json.loads(pathlib.Path(web, "package-lock.json").read_text(encoding="utf-8"))["packages"]
    found = []
    for name in CARRIED:
        entry = packages["node_modules/" + name]
        algorithm, _, digest = entry["integrity"].partition("-")
        if algorithm != "sha512":
            raise ValueError(f"{name} is locked by {algorithm}, not by sha512")
        found.append({"name": name, "version": entry["version"], "license": entry["license"],
                      "sha512": base64.b64decode(digest).hex()})
    return found


def license_texts(web):
    texts = ["The web page that is compiled into lockstep carries the following packages of npm.\n"]
    for part in parts(web):
        folder = pathlib.Path(web, "node_modules", part["name"])
        files = sorted(file for file in folder.iterdir() if file.name.lower() in LICENSE_NAMES)
        if not files:
            raise ValueError(f"{folder} has no license text")
        title = f"{part['name']} {part['version']} ({part['license']})"
        texts.append(f"{title}\n{'=' * len(title)}\n\n{files[0].read_text(encoding='utf-8').strip()}\n")
    return "\n\n".join(texts)


def main():
    web, output = sys.argv[1:]
    try:
        pathlib.Path(output).write_text(license_texts(web), encoding="utf-8")
    except (OSError, KeyError, ValueError) as error:
        print(f"page_parts: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
