"""src/layers.txt: which folder of src/ includes which, and which sub-folder of a folder includes which of its own.

A line of the file is one of

  server: base json node           the other folders whose headers the files of server include
  server/openai: chat request      the sub-folders of server whose headers the files of server/openai include
  server/.: openai ollama          the same for the files of server that are in no sub-folder, which others call "."

Every include between two of them is declared, every declaration is used, and there are no cycles.
"""

from dataclasses import dataclass, field


@dataclass
class Layers:
    folders: dict = field(default_factory=dict)  # folder -> folders
    rooms: dict = field(default_factory=dict)  # folder -> {sub-folder or ".": sub-folders or "."}

    def rooms_of(self, folder):
        return self.rooms.get(folder, {})


def parse(text):
    layers = Layers()
    for line in text.splitlines():
        name, colon, uses = line.split("#")[0].strip().partition(":")
        if not colon:
            continue
        folder, slash, room = name.strip().partition("/")
        if slash:
            layers.rooms.setdefault(folder, {})[room] = uses.split()
        else:
            layers.folders[folder] = uses.split()
    return layers


def closure(uses, start):
    """All that `start` uses, directly or not, itself included."""
    reached, waiting = set(), [start]
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting += uses.get(current, [])
    return reached


def place(path):
    """(folder, room) of a path below src/: ("server", "openai"), ("server", "."), ("", "") for a file of src/ itself."""
    parts = path.split("/")
    if len(parts) == 1:
        return "", ""
    return parts[0], parts[1] if len(parts) > 2 else "."


def table_problems(layers, places):
    """The problems of the table itself; `places` are those of all files of src/."""
    for folder in sorted({folder for folder, _ in places if folder} - set(layers.folders)):
        yield f"the folder {folder} is not in the table"
    for folder, room in sorted(places):
        rooms = {r for f, r in places if f == folder}
        if folder and len(rooms) > 1 and room not in layers.rooms_of(folder):
            yield f"{folder}/{room} is not in the table"
    yield from graph_problems(layers.folders, "")
    for folder, uses in layers.rooms.items():
        yield from graph_problems(uses, folder + "/")


def graph_problems(uses, prefix):
    for name, used_names in uses.items():
        for used in used_names:
            if used not in uses:
                yield f"{prefix}{name} uses {prefix}{used}, which is not in the table"
            elif name in closure(uses, used):
                yield f"{prefix}{name} and {prefix}{used} use each other"


def edge(user, include):
    """(what declares it, what it uses) of an include that crosses a border: a folder's name or "folder/room"."""
    folder, room = user
    used_folder, used_room = place(include)
    if used_folder != folder:
        return folder, used_folder
    return (f"{folder}/{room}", used_room) if used_room != room else None


def is_declared(layers, declares, used):
    folder, slash, room = declares.partition("/")
    return used in (layers.rooms_of(folder).get(room, []) if slash else layers.folders.get(folder, []))


def declared_edges(layers):
    for folder, uses in layers.folders.items():
        yield from ((folder, used) for used in uses)
    for folder, rooms in layers.rooms.items():
        for room, uses in rooms.items():
            yield from ((f"{folder}/{room}", used) for used in uses)
