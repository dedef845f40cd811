"""Whether a package-lock.json would install the packages that integrity.txt lists: the same version, the same bytes.

check_integrity.py LOCK PACKAGE@VERSION...: exit status 1 with a sentence if a package has no hash, or another one. What these
packages depend on is held by npm to the hashes of the lock, which come from the registry."""

import json
import os
import sys

HASHES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "integrity.txt")


def known_hashes(path=HASHES):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {package: digest for package, digest in lines}


def problems(lock, packages, hashes):
    """A sentence for each package that differs from its entry."""
    for package in packages:
        name, _, version = package.rpartition("@")
        entry = lock.get("packages", {}).get(f"node_modules/{name}", {})
        if package not in hashes:
            yield f"{package} has no hash in tests/clients/integrity.txt"
        elif entry.get("version") != version:
            yield f"{package} is not what npm chose: {entry.get('version', 'nothing')}"
        elif entry.get("integrity") != hashes[package]:
            yield f"{package} has other bytes than tests/clients/integrity.txt says: {entry.get('integrity', 'no hash')}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lock = json.load(file)
    found = list(problems(lock, sys.argv[2:], known_hashes()))
    for problem in found:
        print(f"clients: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
