"""Writes the program's components as CycloneDX 1.5 (JSON): the Debian packages of the libraries that it loads, those
whose headers are compiled in, the packages of npm in its web page, and the model that is shipped with it; versions, licenses, purls, SHA-256.

  sbom.py --program build/release/lockstep --source . --output FILE [--package FILE.deb] [--build-folder build/release]

Reads the ELF headers of the program and of its libraries, dpkg's database, /usr/share/doc/*/copyright and, where a
build folder is named, what ninja knows of included headers. The same machine and program give the same bytes: the time is
SOURCE_DATE_EPOCH (1970 without it). Debian and Ubuntu; only Python's standard library."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elf
import page_parts

# Debian's short names (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/#license-short-name) and names that
# its packages use, in those of SPDX.
LICENSES = {
    "apache-2.0": "Apache-2.0", "expat": "MIT", "mit": "MIT", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause",
    "bsd-4-clause": "BSD-4-Clause", "bsl-1.0": "BSL-1.0", "boost-1.0": "BSL-1.0", "curl": "curl", "isc": "ISC", "zlib": "Zlib",
    "gpl-1+": "GPL-1.0-or-later", "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-3": "GPL-3.0-only",
    "gpl-3+": "GPL-3.0-or-later", "lgpl-2": "LGPL-2.0-only", "lgpl-2+": "LGPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only",
    "lgpl-2.1+": "LGPL-2.1-or-later", "lgpl-3": "LGPL-3.0-only", "lgpl-3+": "LGPL-3.0-or-later", "openldap-2.8": "OLDAP-2.8",
}
KERNEL_LIBRARIES = {"linux-vdso.so.1"}
HEADERS = "/usr/include/"
# Names for UUIDs, so that the same content has the same serial number.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "lockstep/sbom")


class Failure(Exception):
    pass


def said_by(*command, may_fail=False):
    process = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    if process.returncode != 0 and not may_fail:
        raise Failure(f"`{' '.join(command[:3])}` failed: {process.stderr.strip()}")
    return process.stdout


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else \
            hashlib.sha256(file.read()).hexdigest()


def library_folders():
    """The folders that the dynamic linker searches."""
    found = []
    for line in said_by("/sbin/ldconfig", "-p").splitlines():
        match = re.match(r"\s+(\S+) \(([^)]*)\) => (\S+)", line)
        if match:
            found.append((match[1], match[3]))
    return found


def linked_libraries(program):
    """{file name: path} of all libraries that are loaded with the program, and {path or "": names needed}."""
    known = {}
    for name, path in library_folders():
        known.setdefault(name, []).append(path)
    own = elf.read(program)
    libraries, needs, waiting = {}, {"": own.needed()}, list(own.needed())
    while waiting:
        name = waiting.pop()
        if name in libraries or name in KERNEL_LIBRARIES:
            continue
        for path in known.get(name, []):
            try:
                library = elf.read(path)
            except ValueError:
                continue
            if library.machine == own.machine:
                libraries[name] = os.path.realpath(path)
                needs[name] = library.needed()
                waiting += library.needed()
                break
        else:
            raise Failure(f"{name}, which the program needs, is in no folder of the dynamic linker")
    return libraries, needs


def owners(paths):
    """{path: package} from dpkg's lists; a path in /usr may be listed without the prefix."""
    asked = {}
    for path in paths:
        asked[path] = path
        if path.startswith("/usr/lib"):
            asked[path[len("/usr"):]] = path
        elif path.startswith("/lib"):
            asked["/usr" + path] = path
    found, names = {}, sorted(asked)
    for i in range(0, len(names), 500):
        for line in said_by("dpkg-query", "-S", *names[i:i + 500], may_fail=True).splitlines():
            package, _, path = line.partition(": ")
            if path in asked and not package.startswith("diversion"):
                found[asked[path]] = package.split(",")[0].strip()
    return found


def compiled_in(build_folder):
    """The packages whose headers the objects of the program were compiled with."""
    headers, is_ours = set(), False
    for line in said_by("ninja", "-C", build_folder, "-t", "deps").splitlines():
        if not line.startswith(" "):
            is_ours = line.startswith("src/")  # an object of the program, not of a test
        elif is_ours and line.strip().startswith(HEADERS):
            headers.add(os.path.realpath(line.strip()))
    return set(owners(headers).values())


def license_of(package):
    """From its copyright file: as SPDX, else in the file's own words, else where a person finds it."""
    path = pathlib.Path("/usr/share/doc", package.split(":")[0], "copyright")
    text = debian_license(path)
    expression = spdx(text) if text else None
    if expression:
        return {"expression": expression}
    return {"license": {"name": text or f"see {path}"}}


def debian_license(path):
    """The license of all files in a copyright file in Debian's format; None if it is free text."""
    if not path.exists():
        return None
    stanzas = re.split(r"\n\s*\n", path.read_text(encoding="utf-8", errors="replace"))
    for stanza in stanzas:
        fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
        files = re.search(r"^Files:[ \t]*\n?[ \t]*(\S+)", stanza, re.MULTILINE)
        if files and files[1] in ("*", "./*") and fields.get("License"):
            return fields["License"]
    return None


def spdx(text):
    """Debian's "Expat or GPL-2+" as "MIT OR GPL-2.0-or-later"; None if a name is unknown."""
    words = []
    for word in re.split(r"\s+", text.replace(",", " ").strip()):
        if word in ("and", "or"):
            words.append(word.upper())
        elif word.lower() in LICENSES:
            words.append(LICENSES[word.lower()])
        else:
            return None
    return " ".join(words) or None


def distribution():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    fields = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    return fields.get("ID", "linux"), fields.get("VERSION_ID", "")


def package_component(package, libraries):
    facts = said_by("dpkg-query", "-W", "-f=${Package}\t${Version}\t${Architecture}\t${source:Package}\t${Homepage}\n",
                    package).splitlines()[0].split("\t")
    name, version, architecture, source, homepage = facts
    system, release = distribution()
    where = urllib.parse.urlencode({"arch": architecture, "distro": f"{system}-{release}"})
    purl = f"pkg:deb/{system}/{urllib.parse.quote(name, safe='')}@{urllib.parse.quote(version, safe='')}?{where}"
    component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
                 "licenses": [license_of(package)], "properties": [{"name": "lockstep:source-package", "value": source}]}
    if homepage:
        component["externalReferences"] = [{"type": "website", "url": homepage}]
    if libraries:
        component["components"] = [file_component(path, purl) for path in sorted(libraries)]
    return component


def file_component(path, owner, name=None):
    name = name or path
    return {"type": "file", "bom-ref": f"{owner}#{name}", "name": name,
            "hashes": [{"alg": "SHA-256", "content": sha256(path)}]}


def model_component(source):
    folder = pathlib.Path(source, "models", "stories260K")
    files = sorted(path for path in folder.iterdir() if path.is_file())
    ref = "model:stories260K"
    return {"type": "machine-learning-model", "bom-ref": ref, "name": folder.name, "version": sha256(folder / "model.safetensors")[:12],
            "licenses": [{"license": {"id": "MIT"}}],
            "components": [file_component(path, ref, f"models/{folder.name}/{path.name}") for path in files]}


def page_components(options):
    """Components of npm that the built-in web page contains; none with the plain page or without a build folder."""
    if not options.build_folder:
        return []
    cache = pathlib.Path(options.build_folder, "CMakeCache.txt").read_text(encoding="utf-8")
    if "LOCKSTEP_HAS_PAGE:INTERNAL=ON" not in cache:
        return []
    components = []
    for part in page_parts.parts(pathlib.Path(options.source, "web")):
        ref = f"pkg:npm/{urllib.parse.quote(part['name'], safe='')}@{part['version']}"
        components.append({"type": "library", "bom-ref": ref, "name": part["name"], "version": part["version"], "purl": ref,
                           "licenses": [{"license": {"id": part["license"]}}],
                           "hashes": [{"alg": "SHA-512", "content": part["sha512"]}],  # of the package
                           "properties": [{"name": "lockstep:use", "value": "compiled into the web page"}]})
    return components


def version_of(source):
    text = pathlib.Path(source, "src/base/version.h").read_text(encoding="utf-8")
    return re.search(r'kVersion = "([\d.]+)"', text)[1]


class Libraries:
    """The libraries that the program loads and was compiled with, by package."""

    def __init__(self, program, build_folder):
        paths, self.needs = linked_libraries(program)
        found = owners(set(paths.values()))
        missing = sorted(set(paths.values()) - set(found))
        if missing:
            raise Failure(f"no package has {', '.join(missing)}")
        self.package_of = {name: found[path] for name, path in paths.items()}
        files = {}
        for name, path in paths.items():
            files.setdefault(self.package_of[name], set()).add(path)
        self.headers = compiled_in(build_folder) if build_folder else set()
        self.components = {package: package_component(package, files.get(package, set()))
                           for package in sorted(set(files) | self.headers)}
        for package in self.headers - set(files):
            self.components[package]["properties"].append({"name": "lockstep:use", "value": "headers compiled in"})

    def ref(self, package):
        return self.components[package]["bom-ref"]

    def needed_by(self, library):
        return {self.ref(self.package_of[name]) for name in self.needs[library] if name in self.package_of}

    def edges(self, program_ref):
        """{component: those it depends on}"""
        edges = {program_ref: self.needed_by("") | {self.ref(package) for package in self.headers}}
        for package in self.components:
            ref = self.ref(package)
            own = [name for name in self.needs if name and self.package_of[name] == package]
            edges[ref] = set().union(*map(self.needed_by, own)) - {ref}
        return edges


def program_component(options):
    version = version_of(options.source)
    ref = f"pkg:generic/lockstep@{version}"
    component = {"type": "application", "bom-ref": ref, "name": "lockstep", "version": version, "purl": ref,
                 "licenses": [{"license": {"id": "Apache-2.0"}}],
                 "components": [file_component(options.program, ref, "lockstep")]}
    if options.package:
        component["components"].append(file_component(options.package, ref, os.path.basename(options.package)))
    return component


def bill(options):
    libraries = Libraries(options.program, options.build_folder)
    program, model = program_component(options), model_component(options.source)
    edges = libraries.edges(program["bom-ref"])
    edges[program["bom-ref"]].add(model["bom-ref"])
    edges[model["bom-ref"]] = set()
    page = page_components(options)
    for component in page:
        edges[program["bom-ref"]].add(component["bom-ref"])
        edges[component["bom-ref"]] = set()
    content = {"metadata": {"timestamp": timestamp(), "component": program},
               "components": [*libraries.components.values(), *page, model],
               "dependencies": [{"ref": ref, "dependsOn": sorted(on)} for ref, on in sorted(edges.items())]}
    serial = uuid.uuid5(NAMESPACE, json.dumps(content, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1, **content}


def timestamp():
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def main():
    parser = argparse.ArgumentParser(description="what the program is made of, as CycloneDX 1.5")
    for name, needed in (("program", True), ("source", True), ("output", True), ("package", False), ("build-folder", False)):
        parser.add_argument(f"--{name}", required=needed)
    options = parser.parse_args()
    try:
        text = json.dumps(bill(options), indent=2, ensure_ascii=True) + "\n"
    except (Failure, OSError, ValueError) as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    pathlib.Path(options.output).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
