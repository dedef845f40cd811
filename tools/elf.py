"""The parts of ELF files that tools and tests read (64 bits, little-endian), by the System V ABI and its
extension for GNU properties. Uses only struct: a machine may have no readelf."""

import struct

ET_DYN = 3
EM_X86_64 = 62
PT_LOAD, PT_DYNAMIC, PT_NOTE = 1, 2, 4
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
SHT_NOTE, SHT_DYNSYM, SHT_PROGBITS = 7, 11, 1
SHF_EXECINSTR = 4
DT_NEEDED, DT_PLTGOT, DT_STRTAB, DT_RPATH, DT_TEXTREL, DT_FLAGS, DT_RUNPATH, DT_FLAGS_1 = 1, 3, 5, 15, 22, 30, 29, 0x6FFFFFFB
DF_TEXTREL, DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 4, 8, 1, 0x08000000
NT_GNU_PROPERTY_TYPE_0 = 5
GNU_PROPERTY_X86_FEATURE_1_AND = 0xC0000002
IBT, SHSTK = 1, 2


class Segment:
    def __init__(self, values):
        (self.type, self.flags, self.offset, self.address, _, self.file_size, self.size, self.alignment) = values


class Section:
    def __init__(self, values):
        (self.name, self.type, self.flags, _, self.offset, self.size, self.link, _, self.alignment, _) = values


class Elf:
    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no ELF file of 64 bits in little-endian order")
        self.data = data
        (self.type, self.machine, _, _, segments, sections, _, _, segment_size, segment_count, section_size, section_count,
         _) = struct.unpack_from("<HHIQQQIHHHHHH", data, 16)
        self.segments = [Segment(struct.unpack_from("<IIQQQQQQ", data, segments + i * segment_size))
                         for i in range(segment_count)]
        self.sections = [Section(struct.unpack_from("<IIQQQQIIQQ", data, sections + i * section_size))
                         for i in range(section_count)]

    def segments_of(self, kind):
        return [segment for segment in self.segments if segment.type == kind]

    def dynamic(self):
        """{tag: [values]}"""
        entries = {}
        for segment in self.segments_of(PT_DYNAMIC):
            for at in range(segment.offset, segment.offset + segment.file_size, 16):
                tag, value = struct.unpack_from("<qQ", self.data, at)
                if tag == 0:
                    break
                entries.setdefault(tag, []).append(value)
        return entries

    def flags(self, tag):
        return self.dynamic().get(tag, [0])[0]

    def text(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def offset_of(self, address):
        for segment in self.segments_of(PT_LOAD):
            if segment.address <= address < segment.address + segment.file_size:
                return address - segment.address + segment.offset
        raise ValueError(f"nothing of the file is loaded at {address:#x}")

    def needed(self):
        """The names of the libraries that it is linked with."""
        entries = self.dynamic()
        strings = self.offset_of(entries[DT_STRTAB][0])
        return [self.text(strings + at) for at in entries.get(DT_NEEDED, [])]

    def imports(self):
        """The names of the dynamic symbols that other files define."""
        return {name for name, is_defined in self._dynamic_symbols() if not is_defined}

    def exports(self):
        """The names of the dynamic symbols that it defines."""
        return {name for name, is_defined in self._dynamic_symbols() if is_defined}

    def _dynamic_symbols(self):
        for section in self.sections:
            if section.type != SHT_DYNSYM:
                continue
            strings = self.sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, 24):
                name, _, _, index = struct.unpack_from("<IBBH", self.data, at)
                if name != 0:
                    yield self.text(strings + name), index != 0

    def x86_features(self):
        """The IBT and SHSTK bits of its GNU properties. 0 if there are none."""
        places = [(s.offset, s.file_size, s.alignment) for s in self.segments_of(PT_NOTE)] if self.segments else \
                 [(s.offset, s.size, s.alignment) for s in self.sections if s.type == SHT_NOTE]
        for offset, size, alignment in places:
            features = self._features_in(offset, offset + size, max(4, alignment))
            if features:
                return features
        return 0

    def _features_in(self, at, end, alignment):
        def aligned(number):
            return (number + alignment - 1) // alignment * alignment

        while at + 12 <= end:
            name_size, size, kind = struct.unpack_from("<III", self.data, at)
            name = self.data[at + 12:at + 12 + name_size]
            content = at + aligned(12 + name_size)
            if kind == NT_GNU_PROPERTY_TYPE_0 and name == b"GNU\0":
                place = content
                while place + 8 <= content + size:
                    property_kind, property_size = struct.unpack_from("<II", self.data, place)
                    if property_kind == GNU_PROPERTY_X86_FEATURE_1_AND:
                        return struct.unpack_from("<I", self.data, place + 8)[0]
                    place += 8 + (property_size + 7) // 8 * 8
            at = content + aligned(size)
        return 0

    def has_code(self):
        return any(s.type == SHT_PROGBITS and s.flags & SHF_EXECINSTR and s.size > 0 for s in self.sections)


def read(path):
    with open(path, "rb") as file:
        return Elf(file.read())


def members(path):
    """(name, content) of each file in an ar archive with GNU's long names."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"!<arch>\n":
        raise ValueError(f"{path} is no archive")
    at, long_names = 8, b""
    while at + 60 <= len(data):
        name, size = data[at:at + 16].decode().rstrip(), int(data[at + 48:at + 58])
        content = data[at + 60:at + 60 + size]
        at += 60 + size + size % 2
        if name == "//":
            long_names = content
        elif name not in ("/", "/SYM64/"):
            if name.startswith("/"):
                start = int(name[1:])
                name = long_names[start:long_names.index(b"/\n", start)].decode()
            yield name.rstrip("/"), content
