"""The same sources give the same bytes from any folder, and contain nothing of the folder: two objects are compiled in
two folders as the build compiles them. tools/reproducible.sh does so with the whole program and its package."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
import harness

BINARY_DIR = os.environ.get("LOCKSTEP_BINARY_DIR", os.path.join(harness.SOURCE, "build/release"))
NAMES_FOLDERS = f"built with -fsanitize={harness.SANITIZERS}, whose reports name folders"
# They name their own path (LOCKSTEP_CHECK).
SOURCES = ("src/base/threads/thread_team.cc", "src/tensor/stored_rows.cc")


def commands():
    """{source: arguments} as the build compiles the library that a source is in (alone, even if the build compiles several
    files together), without the flags that only cache objects."""
    with open(os.path.join(BINARY_DIR, "compile_commands.json"), encoding="utf-8") as file:
        entries = [shlex.split(entry["command"]) for entry in json.load(file)]
    found = {}
    for source in SOURCES:
        folder = f"src/CMakeFiles/lockstep_{source.split('/')[1]}.dir"
        arguments = next(entry for entry in entries if entry[entry.index("-o") + 1].startswith(folder + "/")
                         and "-c" in entry and entry[-1].endswith((".cc", ".cxx")))
        arguments = arguments[next(i for i, word in enumerate(arguments) if re.search(r"(\+\+|clang|gcc)[^/]*$", word)):]
        arguments[arguments.index("-o") + 1] = f"{folder}/{os.path.basename(source)}.o"
        arguments[arguments.index("-c") + 1] = os.path.join(harness.SOURCE, source)
        found[source] = arguments
    return found


@unittest.skipUnless(os.path.exists(os.path.join(BINARY_DIR, "compile_commands.json")), "the build has no compile_commands.json")
class Objects(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = work.name

    def compile(self, name):
        """{source: bytes of its object} from a copy of the sources in a folder of this name."""
        root = os.path.join(self.work, name)
        shutil.copytree(os.path.join(harness.SOURCE, "src"), os.path.join(root, "src"))
        build = os.path.join(root, "build")
        objects = {}
        for source, arguments in commands().items():
            arguments = [argument.replace(BINARY_DIR, build).replace(harness.SOURCE, root) for argument in arguments]
            output = arguments[arguments.index("-o") + 1]
            os.makedirs(os.path.dirname(os.path.join(build, output)), exist_ok=True)
            for included in re.findall(r"\S+cmake_pch\.hxx", " ".join(arguments)):  # as an ordinary header
                os.makedirs(os.path.dirname(included), exist_ok=True)
                shutil.copy(included.replace(build, BINARY_DIR), included)
            done = subprocess.run(arguments, cwd=build, capture_output=True, text=True, timeout=240, check=False,
                                  env={**os.environ, "CCACHE_DISABLE": "1"})
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(build, output), "rb") as file:
                objects[source] = file.read()
        return root, objects

    @unittest.skipIf(harness.SANITIZERS, NAMES_FOLDERS)
    def test_two_folders_give_the_same_objects(self):
        first_root, first = self.compile("first")
        second_root, second = self.compile("second-of-another-length")
        self.assertEqual(sorted(first), sorted(SOURCES))
        for source in SOURCES:
            self.assertTrue(first[source] == second[source], f"{source} differs")
            for root, objects in ((first_root, first), (second_root, second)):
                self.assertNotIn(root.encode(), objects[source])

    @unittest.skipIf(harness.SANITIZERS, NAMES_FOLDERS)
    def test_the_program_names_no_folder_of_this_machine(self):
        with open(harness.PROGRAM, "rb") as file:
            program = file.read()
        self.assertFalse(harness.SOURCE.encode() + b"/src/" in program)
        self.assertTrue(b"src/base/" in program)  # the place of a failing check

    def test_archives_know_neither_when_nor_by_whom_they_were_made(self):
        folder = os.path.join(BINARY_DIR, "src")
        archives = [name for name in os.listdir(folder) if name.endswith(".a")]
        self.assertGreater(len(archives), 15)
        for name in archives:
            with open(os.path.join(folder, name), "rb") as file:
                self.assertEqual(file.read(8), b"!<arch>\n")
                while header := file.read(60):
                    date, owner, group, mode, size = header[16:28], header[28:34], header[34:40], header[40:48], header[48:58]
                    for field in (date, owner, group):
                        self.assertIn(field.strip(), (b"0", b""))
                    self.assertIn(mode.strip(), (b"0", b"644", b"100644", b""))
                    file.seek(int(size) + int(size) % 2, os.SEEK_CUR)


if __name__ == "__main__":
    harness.main()
