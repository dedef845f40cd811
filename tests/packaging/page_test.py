"""tools/embed_page.py: the page in the program has the bytes of its files, is the same on each run, and is refused where it could
not be served. Node is not needed; where it is, and web/node_modules, the real page is built twice and embedded."""

import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TOOL = SOURCE / "tools/embed_page.py"
FAKE = SOURCE / "tests/data/page"
FIRST_LOAD_BYTES_MAX = 110 * 1000  # compressed: the page, and what it names
PATIENCE_S = 120

sys.path.insert(0, str(SOURCE / "tools"))
import page_parts

# The packages that the compiler reads for the page, one a line.
READ_PACKAGES = """
import { build } from "esbuild";
import { svelte } from "./build.mjs";
const { metafile } = await build({ entryPoints: ["src/main.ts"], bundle: true, splitting: true, format: "esm", minify: true,
  write: false, outdir: "unused", metafile: true, plugins: [svelte], conditions: ["svelte", "browser", "production"],
  loader: { ".woff2": "file" }, define: { GALLERY: "false", "process.env.NODE_ENV": '"production"' }, logLevel: "error" });
const used = Object.values(metafile.outputs).flatMap(({ inputs }) =>
  Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([name]) => name));
const packages = used.map((name) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(name)?.[1]).filter((name) => name);
console.log([...new Set(packages)].join("\\n"));
"""
HAS_NODE = shutil.which("node") and (SOURCE / "web/node_modules/.package-lock.json").exists()


def embed(folder, output):
    return subprocess.run([sys.executable, "-B", TOOL, folder, output], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def bytes_of(literals):
    """The bytes of adjacent C++ string literals of the form that the tool writes."""
    text = "".join(re.findall(r'^"(.*)"', literals, re.MULTILINE))
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text).encode("latin-1")


def files_in(source):
    """{path: (type, hash, plain, compressed)}"""
    arrays = {match[1]: bytes_of(match[2]) for match in re.finditer(r"constexpr char (\w+)\[\] =\n(.*?);\n", source, re.DOTALL)}
    found = {}
    for path, kind, digest, plain, plain_size, packed, packed_size in re.findall(
            r'\{"([^"]+)", "([^"]+)", "(\w+)",\n\s+\{(\w+), (\d+)\}, \{(\w+), (\d+)\}\}', source):
        assert len(arrays[plain]) == int(plain_size) and len(arrays[packed]) == int(packed_size), path
        found[path] = (kind, digest, arrays[plain], arrays[packed])
    return found


class Embedding(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "page.cc"

    def embedded(self, folder):
        result = embed(folder, self.output)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.output.read_text(encoding="ascii")

    def check_files(self, folder, source):
        files = files_in(source)
        names = {"/" + str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"}
        self.assertEqual(set(files), names - {"/index.html"} | {"/"})
        for path, (_, digest, plain, packed) in files.items():
            self.assertEqual(plain, (folder / (path[1:] or "index.html")).read_bytes(), path)
            self.assertEqual(digest, hashlib.sha256(plain).hexdigest()[:32], path)
            self.assertTrue(not packed or gzip.decompress(packed) == plain, path)
        return files

    def test_bytes_are_those_of_the_files(self):
        files = self.check_files(FAKE, self.embedded(FAKE))
        self.assertTrue(files["/assets/main.1A2B3C4D.js"][3])
        self.assertFalse(files["/assets/letters.5E6F7A8B.woff2"][3])

    def test_the_same_page_gives_the_same_source(self):
        first = self.embedded(FAKE)
        copy = self.folder / "copy"
        shutil.copytree(FAKE, copy)  # other times of files, another folder
        self.assertEqual(self.embedded(copy), first)

    def test_folders_that_are_no_page_are_refused(self):
        cases = {"has no index.html": lambda page: (page / "index.html").unlink(),
                 "is no file with a name like": lambda page: (page / "assets/main.js").write_text("1", encoding="ascii"),
                 "at most 4194304 are built in": lambda page: (page / "assets/big.00112233.js").write_bytes(bytes(4 << 20)),
                 "at most 255 are served":
                     lambda page: [(page / f"assets/a.{i:08}.js").write_text("1", encoding="ascii") for i in range(256)]}
        for sentence, spoil in cases.items():
            with self.subTest(sentence):
                page = self.folder / "page"
                shutil.rmtree(page, ignore_errors=True)
                shutil.copytree(FAKE, page)
                spoil(page)
                result = embed(page, self.output)
                self.assertEqual(result.returncode, 1)
                self.assertIn(sentence, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1)
                self.assertFalse(self.output.exists())

    @unittest.skipUnless(HAS_NODE, "no Node or no web/node_modules")
    def test_the_real_page_is_the_same_twice_and_small(self):
        sources = []
        for name in ("first", "second of another length"):
            built = self.folder / name
            subprocess.run(["node", SOURCE / "web/build.mjs", built], check=True, timeout=PATIENCE_S)
            sources.append(self.embedded(built))
            files = self.check_files(built, sources[-1])
        self.assertEqual(sources[0], sources[1])
        page = files["/"][2].decode()
        named = [files["/"]] + [files[path] for path in re.findall(r'"(/assets/[^"]+)"', page)]
        self.assertGreater(len(named), 2)
        self.assertLessEqual(sum(len(packed or plain) for _, _, plain, packed in named), FIRST_LOAD_BYTES_MAX)
        self.assertNotRegex(page, r"<style|<script(?![^>]* src=)|\son\w+=|\sstyle=")

    @unittest.skipUnless(HAS_NODE, "no Node or no web/node_modules")
    def test_the_bill_names_each_package_of_the_page(self):
        read = subprocess.run(["node", "--input-type=module", "-e", READ_PACKAGES], cwd=SOURCE / "web", capture_output=True, text=True,
                              timeout=PATIENCE_S, check=True).stdout.split()
        self.assertTrue(read)
        self.assertLessEqual(set(read), set(page_parts.CARRIED))
        self.assertEqual([part["name"] for part in page_parts.parts(SOURCE / "web")], page_parts.CARRIED)
        texts = page_parts.license_texts(SOURCE / "web")
        for owner in ("Svelte Contributors", "Christopher Jeffrey", "Ivan Sagalaev", "Ron Kok"):
            self.assertIn(owner, texts)


if __name__ == "__main__":
    unittest.main()
