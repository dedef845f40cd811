"""The parts of Mach-O programs that the checks read (64 bits, little-endian), by Apple's <mach-o/loader.h>, <mach-o/nlist.h> and, for
the signature, xnu's osfmk/kern/cs_blobs.h. Uses only struct: Linux has no otool."""

import hashlib
import struct
from dataclasses import dataclass

MH_MAGIC_64 = 0xFEEDFACF
MH_EXECUTE = 2
MH_TWOLEVEL, MH_PIE = 0x80, 0x200000
PROCESSORS = {0x0100000C: "arm64", 0x01000007: "x86_64"}
LC_SYMTAB, LC_LOAD_DYLIB, LC_CODE_SIGNATURE, LC_BUILD_VERSION = 0x2, 0xC, 0x1D, 0x32
LC_LOAD_WEAK_DYLIB, LC_RPATH, LC_REEXPORT_DYLIB, LC_DYLD_INFO_ONLY = 0x80000018, 0x8000001C, 0x8000001F, 0x80000022
LC_DYLD_CHAINED_FIXUPS = 0x80000034
PLATFORM_MACOS = 1
N_STAB, N_TYPE, N_EXT = 0xE0, 0x0E, 0x01
N_WEAK_REF = 0x40
# Ordinals of libraries that name no library of the list: itself, the main program, a search of all.
SPECIAL_ORDINALS = {0: "the program itself", 0xFE: "a search of all libraries", 0xFF: "the main program"}
CS_MAGIC_SIGNATURE, CS_MAGIC_DIRECTORY, CS_ADHOC, CS_SHA256 = 0xFADE0CC0, 0xFADE0C02, 0x2, 2


@dataclass(frozen=True)
class Import:
    name: str
    library: str  # an install name, or a special place


class MachO:
    """Raises ValueError for bytes that are no such file, struct.error for a file that ends too early."""

    def __init__(self, data):
        magic, processor, _, self.file_type, count, size, self.flags, _ = struct.unpack_from("<8I", data)
        if magic != MH_MAGIC_64:
            raise ValueError("it is no Mach-O file of 64 bits in little-endian order")
        self.data = data
        self.processor = PROCESSORS.get(processor, f"{processor:#x}")
        self.commands = []
        at = 32
        for _ in range(count):
            kind, length = struct.unpack_from("<II", data, at)
            if length < 8 or at + length > 32 + size:
                raise ValueError(f"its load command at {at:#x} does not fit")
            self.commands.append((kind, data[at:at + length]))
            at += length

    def commands_of(self, *kinds):
        return [body for kind, body in self.commands if kind in kinds]

    def build_version(self):
        """(platform, oldest version of the system as (major, minor)); None if it names neither."""
        for body in self.commands_of(LC_BUILD_VERSION):
            platform, oldest = struct.unpack_from("<II", body, 8)
            return platform, (oldest >> 16, oldest >> 8 & 0xFF)
        return None

    def libraries(self):
        """Install names in the order that ordinals count, from 1."""
        bodies = self.commands_of(LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB, LC_REEXPORT_DYLIB)
        return [_text(body, struct.unpack_from("<I", body, 8)[0]) for body in bodies]

    def rpaths(self):
        return [_text(body, struct.unpack_from("<I", body, 8)[0]) for body in self.commands_of(LC_RPATH)]

    def imports(self):
        """Symbols that the symbol table leaves to libraries."""
        libraries = self.libraries()
        found = set()
        for body in self.commands_of(LC_SYMTAB):
            symbols, count, strings, _ = struct.unpack_from("<4I", body, 8)
            for at in range(symbols, symbols + 16 * count, 16):
                name, kind, _, description, _ = struct.unpack_from("<IBBHQ", self.data, at)
                if kind & N_STAB or kind & N_TYPE or not kind & N_EXT:
                    continue
                found.add(Import(_text(self.data, strings + name), _library(description >> 8, libraries)))
        return found

    def bound(self):
        """Symbols that dyld binds when the program starts, by the opcodes of LC_DYLD_INFO_ONLY. Those that several libraries
        may have, such as operator new, are bound by name alone and are not in it."""
        libraries = self.libraries()
        found = set()
        for body in self.commands_of(LC_DYLD_INFO_ONLY):
            fields = struct.unpack_from("<10I", body, 8)
            for offset, size in (fields[2:4], fields[6:8]):  # bound at the start, and when they are first called
                found |= set(_bindings(self.data[offset:offset + size], libraries))
        return found

    def signature(self):
        """The code directory, None without a signature."""
        for body in self.commands_of(LC_CODE_SIGNATURE):
            offset, _ = struct.unpack_from("<II", body, 8)
            magic, _, count = struct.unpack_from(">3I", self.data, offset)
            if magic != CS_MAGIC_SIGNATURE:
                raise ValueError("its signature has no known form")
            for i in range(count):
                place = offset + struct.unpack_from(">II", self.data, offset + 12 + 8 * i)[1]
                if struct.unpack_from(">I", self.data, place)[0] == CS_MAGIC_DIRECTORY:
                    return CodeDirectory(self.data, place)
        return None


class CodeDirectory:
    """Hashes of all pages of the file up to the signature."""

    def __init__(self, data, at):
        (_, _, _, self.flags, hashes, _, _, slots, limit) = struct.unpack_from(">9I", data, at)
        hash_size, hash_type, _, page_log2 = struct.unpack_from(">4B", data, at + 36)
        if hash_type != CS_SHA256 or hash_size != 32:
            raise ValueError("its signature has hashes of another kind than SHA-256")
        self.is_adhoc = bool(self.flags & CS_ADHOC)
        page = 1 << page_log2
        self.wrong_pages = [
            i for i in range(slots)
            if hashlib.sha256(data[i * page:min((i + 1) * page, limit)]).digest() !=
            data[at + hashes + 32 * i:at + hashes + 32 * (i + 1)]
        ]
        self.covers_all = slots * page >= limit and limit <= at


def read(path):
    with open(path, "rb") as file:
        return MachO(file.read())


def _text(data, at):
    return data[at:data.index(b"\0", at)].decode()


def _library(ordinal, libraries):
    if ordinal in SPECIAL_ORDINALS:
        return SPECIAL_ORDINALS[ordinal]
    return libraries[ordinal - 1] if ordinal <= len(libraries) else f"library {ordinal} of {len(libraries)}"


def _uleb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


# BIND_OPCODE_*: how many numbers follow as ULEB128 (an addend's SLEB128 has the same length).
_NUMBERS_AFTER = {0x20: 1, 0x60: 1, 0x70: 1, 0x80: 1, 0xA0: 1, 0xC0: 2}
_BINDS = {0x90, 0xA0, 0xB0, 0xC0}


def _bindings(code, libraries):
    at, ordinal, name = 0, 0, ""
    while at < len(code):
        opcode, small = code[at] & 0xF0, code[at] & 0x0F
        at += 1
        numbers = []
        for _ in range(_NUMBERS_AFTER.get(opcode, 0)):
            number, at = _uleb(code, at)
            numbers.append(number)
        if opcode == 0x10:
            ordinal = small
        elif opcode == 0x20:
            ordinal = numbers[0]
        elif opcode == 0x30:  # 0, -1, -2 in four bits
            ordinal = 0 if small == 0 else 0xF0 | small
        elif opcode == 0x40:
            end = code.index(b"\0", at)
            name, at = code[at:end].decode(), end + 1
        elif opcode in _BINDS:
            yield Import(name, _library(ordinal, libraries))
