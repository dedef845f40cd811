"""Whether a program could be loaded by macOS 15 on a Mac that has Homebrew's libraries, as far as its file shows.

check_program.py --processor arm64|x86_64 --stub LIBRARY.tbd... PROGRAM: a sentence for each reason why not, and exit status 1.
The stubs say which libraries the program may name, and which symbols each of them has. --uses-all: it must name all of them."""

import argparse
import re
import struct
import sys

import macho

OLDEST_SYSTEM = (15, 0)
LIBSYSTEM = "/usr/lib/libSystem.B.dylib"
# - targets: [ ... ] and the lists that follow it, of which those of symbols matter.
BLOCK = re.compile(r"-\s+targets:\s*\[([^\]]*)\]((?:\s*[\w-]+:\s*\[[^\]]*\])+)")
LIST = re.compile(r"([\w-]+):\s*\[([^\]]*)\]")
SYMBOL_LISTS = {"symbols", "weak-symbols", "thread-local-symbols"}


def stub_symbols(text, processor):
    """(install name, symbols) of a stub; those that it exports again for other libraries count as its own."""
    install_name = re.search(r"^install-name:\s*'?([^'\s]+)'?", text, re.MULTILINE)
    if install_name is None:
        raise ValueError("a stub has no install-name")
    symbols = set()
    for targets, lists in BLOCK.findall(text):
        if f"{processor}-macos" not in re.findall(r"[\w-]+", targets):
            continue
        for name, entries in LIST.findall(lists):
            if name in SYMBOL_LISTS:
                symbols.update(re.findall(r"[^\s,']+", entries))
    return install_name.group(1), symbols


def header_problems(program, processor):
    if program.processor != processor:
        yield f"it is for the processor {program.processor}, not {processor}"
    if program.file_type != macho.MH_EXECUTE:
        yield f"it is no program but a file of type {program.file_type}"
    if not program.flags & macho.MH_PIE:
        yield "it is not position-independent (MH_PIE), so its addresses are the same in every run"
    if not program.flags & macho.MH_TWOLEVEL:
        yield "its imports name no libraries (MH_TWOLEVEL is missing)"
    version = program.build_version()
    if version is None:
        yield "it names no oldest version of the system (LC_BUILD_VERSION)"
    elif version[0] != macho.PLATFORM_MACOS:
        yield f"it is for platform {version[0]}, not for macOS (1)"
    elif version[1] != OLDEST_SYSTEM:
        yield f"its oldest macOS is {version[1][0]}.{version[1][1]}, not {OLDEST_SYSTEM[0]}.{OLDEST_SYSTEM[1]}"
    for rpath in program.rpaths():
        if not rpath.startswith("@"):
            yield f"it searches libraries in the folder {rpath} of the machine that built it (LC_RPATH)"


def library_problems(program, stubs, uses_all):
    named = program.libraries()
    for library in named:
        if library not in stubs:
            yield f"it needs {library}, which is not among the libraries that macOS and Homebrew are known to have"
    if uses_all:
        for library in stubs:
            if library not in named:
                yield f"it does not name {library}, which it was meant to use"


def import_problems(program, stubs):
    if program.commands_of(macho.LC_DYLD_CHAINED_FIXUPS):
        yield "its imports have a form that this check does not read (LC_DYLD_CHAINED_FIXUPS)"
    imports, bound = program.imports(), program.bound()
    if not imports or not bound:
        yield "it imports nothing, so that nothing was checked"
    for entry in sorted(imports | bound, key=lambda entry: (entry.library, entry.name)):
        if entry.library not in stubs:
            yield f"{entry.name} is to be found in {entry.library}, which is none of its known libraries"
        elif entry.name not in stubs[entry.library]:
            yield f"{entry.library} has no symbol {entry.name}"


def signature_problems(program):
    """Macs with Apple silicon start no program without a signature; anybody may sign ad hoc."""
    directory = program.signature()
    if directory is None:
        if program.processor == "arm64":
            yield "it has no signature, without which no Mac with Apple silicon starts it"
        return
    if not directory.is_adhoc:
        yield "its signature claims a certificate (it is not ad hoc)"
    if not directory.covers_all:
        yield "its signature does not cover the whole file"
    if directory.wrong_pages:
        yield f"{len(directory.wrong_pages)} of its pages differ from the signature, first page {directory.wrong_pages[0]}"


def problems(data, processor, stubs, uses_all=False):
    try:
        program = macho.MachO(data)
        return [*header_problems(program, processor), *library_problems(program, stubs, uses_all),
                *import_problems(program, stubs), *signature_problems(program)]
    except struct.error:
        return ["the file ends too early"]
    except (ValueError, IndexError) as error:
        return [f"it cannot be read: {error}"]


def read_stubs(paths, processor):
    stubs = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            name, symbols = stub_symbols(file.read(), processor)
        stubs[name] = symbols
    return stubs


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--processor", required=True, choices=["arm64", "x86_64"])
    arguments.add_argument("--stub", action="append", required=True)
    arguments.add_argument("--uses-all", action="store_true")
    arguments.add_argument("program")
    chosen = arguments.parse_args()
    stubs = read_stubs(chosen.stub, chosen.processor)
    with open(chosen.program, "rb") as file:
        data = file.read()
    found = problems(data, chosen.processor, stubs, chosen.uses_all)
    for problem in found:
        print(f"{chosen.program}: {problem}", file=sys.stderr)
    if not found:
        program = macho.MachO(data)
        counts = {library: 0 for library in program.libraries()}
        for entry in program.imports():
            counts[entry.library] += 1
        listed = ", ".join(f"{count} from {library}" for library, count in sorted(counts.items()))
        print(f"{chosen.program}: {chosen.processor}, macOS {OLDEST_SYSTEM[0]}.{OLDEST_SYSTEM[1]}; every import exists: {listed}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
