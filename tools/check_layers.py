#!/usr/bin/env python3
"""Checks the #include lines of the tree against layers.toml. Exit status 1 and one line per fault when they disagree.

tools/check_layers.py [ROOT]
"""

from __future__ import annotations

import fnmatch
import os.path
import pathlib
import re
import sys

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

SUFFIXES = {".h", ".hpp", ".cuh", ".inl", ".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# The C and POSIX libraries and the kernel; the C++ standard library's headers have no suffix.
SYSTEM = ["*.h", "sys/*", "linux/*", "net/*", "netinet/*", "arpa/*", "asm/*", "sanitizer/*"]


class Layers:
    """layers.toml, and the questions asked of it."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        config = tomllib.loads((root / "layers.toml").read_text())
        self.storey = {name: level for level, names in enumerate(config["storeys"]) for name in names}
        self.split, self.edges, self.outside = config["split"], config["edges"], config["outside"]
        self.public_names, self.public_only = config["public"], config["public_only"]
        self.private_headers = config["private"]["headers"]
        self.closed, self.interface = config.get("closed", []), config.get("interface", {})

    def unit(self, path: str) -> str | None:
        """The unit of a file: 'base', 'port' (its interface), 'port/wire/ucx', 'models/pgas', ...; None if unknown."""
        parts = path.split("/")[:-1]
        if parts[:2] == ["include", "brant"]:
            parts = parts[2:]
            if not parts:
                return "include"  # an umbrella header: any public header may be in it
            parts = self.public_names.get(parts[0], parts[0]).split("/") + parts[1:]
        elif parts[:1] == ["src"]:
            parts = parts[1:]
        if not parts or parts[0] not in self.storey:
            return None
        stem = pathlib.PurePosixPath(path).stem
        if path.startswith("include/") and (self.root / "include" / "brant" / "/".join([*parts, stem])).is_dir():
            parts = [*parts, stem]  # a public header beside the folder of its unit's others: ops/rpc.h, ops/rpc/
        depth = self.split.get(parts[0], 1)
        return "/".join(parts[:depth]) if len(parts) >= depth else parts[0]

    def level(self, unit: str) -> float:
        """Umbrella headers stand just above the models: bindings and programs include them, libraries do not."""
        return self.storey["models"] + 0.5 if unit == "include" else self.storey[unit.split("/")[0]]

    def resolve(self, path: str, name: str) -> str | None:
        """The file of this tree that an include names, as the compiler would find it."""
        for folder in (os.path.dirname(path), "src", "include", "tests", ""):
            candidate = os.path.normpath(os.path.join(folder, name))
            if (self.root / candidate).is_file():
                return candidate
        return None

    def fault_inside(self, path: str, unit: str, target: str) -> str | None:
        """Why `path` of `unit` may not include the file `target` of this tree."""
        return self.fault_of_storeys(path, unit, target) or self.fault_of_private(unit, target)

    def fault_of_storeys(self, path: str, unit: str, target: str) -> str | None:
        """Why no file of `unit` may include what `target` belongs to."""
        other = self.unit(target)
        if path.startswith("include/") and not target.startswith("include/"):
            return "public headers include only public headers (src/ is not installed). Move what it needs to include/"
        if other in self.edges.get(unit, []):
            return None
        if unit in self.public_only and not target.startswith(("include/", unit + "/")):
            return f"{unit}/ is written as a user would, on public headers only. Make that header public, or do without"
        if other is None or other == unit or unit == "include":
            return None
        if self.level(other) > self.level(unit):
            return f"{other} is a storey above {unit}. Move the shared part down, or let the upper storey pass it in"
        top = unit.split("/")[0]
        if self.level(other) < self.level(unit):
            return None
        if other == top and top in self.split:
            return None  # the interface or common part of the storey
        if unit == top and top in self.split:
            if path.endswith(".cc"):
                return None  # where the parts are chosen
            return f"the interface of {top} knows none of its parts ({other}). Choose the part in a .cc file"
        return f"{unit} and {other} are siblings. Use the storeys below, or argue for an edge in layers.toml"

    def fault_of_private(self, unit: str, target: str) -> str | None:
        """Why `unit` may not include the file `target`, if that is another unit's own."""
        other = self.unit(target)
        if not self.is_use(unit, target) or not self.is_closed(other):
            return None
        header, open_to_all = self.in_unit(target), self.interface.get(other, [])
        if header in open_to_all or "*" in open_to_all:
            return None
        return f"{header} is {other}'s own. Ask through {', '.join(open_to_all) or 'its public headers'}"

    def is_closed(self, unit: str) -> bool:
        """Whether others may include only those of its headers that [interface] names."""
        storey, _, name = unit.partition("/")
        return unit in self.interface or (storey in self.closed and name != "")

    def is_use(self, unit: str, target: str) -> bool:
        """`target` is of another unit, which did not make it public; tests look everywhere."""
        return self.unit(target) not in (None, unit) and unit != "tests" and not target.startswith("include/")

    def in_unit(self, target: str) -> str:
        """The path of a header in the folder of its unit: two of one name in different folders are two."""
        return target.removeprefix("src/").removeprefix(self.unit(target) + "/")

    def faults_of_interface(self, uses: set[tuple[str, str]]) -> list[str]:
        """What [interface] opens and no other unit includes; `uses` are units and the headers of theirs that are."""
        used_units = {unit for unit, _ in uses}
        return [
            f"layers.toml: [interface] opens {header} of {unit} and no other unit includes it. Drop the name"
            for unit, headers in self.interface.items()
            for header in headers
            if (unit, header) not in uses and not (header == "*" and unit in used_units)
        ]

    def fault_outside(self, path: str, unit: str, name: str) -> str | None:
        """Why `path` of `unit` may not include the outside header `name`."""
        if path.startswith("include/") and any(fnmatch.fnmatch(name, pattern) for pattern in self.private_headers):
            return "public headers name no outside library. Hide it behind a declaration of ours"
        for pattern, allowed in self.outside.items():
            if not fnmatch.fnmatch(name, pattern):
                continue
            if any(self.is_in(path, unit, where) for where in allowed):
                return None
            return f"only {', '.join(allowed)} may. Ask through an interface of {allowed[0].split('/')[0]}"
        if "." not in os.path.basename(name) and "/" not in name:
            return None
        if any(fnmatch.fnmatch(name, pattern) for pattern in SYSTEM if "/" in pattern or "/" not in name):
            return None
        return "it is no file of this tree, and layers.toml knows no such outside library. Name it under [outside]"

    @staticmethod
    def is_in(path: str, unit: str, where: str) -> bool:
        if where.startswith("."):
            return path.endswith(where)
        if where == "device":
            return path.startswith("include/brant/device/")
        return unit == where or unit.startswith(where + "/") or path.startswith((f"src/{where}/", f"{where}/"))


def faults_of(layers: Layers, path: str, uses: set[tuple[str, str]]) -> list[str]:
    """The faults of one file. What it includes of other units is added to `uses`: the unit, and the header in it."""
    unit = layers.unit(path)
    if unit is None:
        return [f"{path}: this folder belongs to no storey. Name it in layers.toml"]
    faults = []
    for number, line in enumerate((layers.root / path).read_text(errors="replace").splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(2)
        target = layers.resolve(path, name)
        if target and layers.is_use(unit, target):
            uses.add((layers.unit(target), layers.in_unit(target)))
        fault = layers.fault_inside(path, unit, target) if target else layers.fault_outside(path, unit, name)
        if fault:
            shown = f"<{name}>" if match.group(1) == "<" else f'"{name}"'
            faults.append(f"{path}:{number}: {unit} may not include {shown}: {fault}")
    return faults


def source_files(root: pathlib.Path, tops: list[str]) -> list[str]:
    found = []
    for top in tops:
        found += [
            str(path.relative_to(root))
            for path in (root / top).rglob("*")
            if path.suffix in SUFFIXES and path.is_file()
        ]
    return sorted(found)


def main(arguments: list[str]) -> int:
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    layers = Layers(root)
    files = source_files(root, ["include", "src", "apps", "bench", "examples", "tests"])
    # Files that must not compile are no part of the house.
    files = [path for path in files if not path.startswith("tests/compile_fail/")]
    uses: set[tuple[str, str]] = set()
    faults = [fault for path in files for fault in faults_of(layers, path, uses)]
    faults += layers.faults_of_interface(uses)
    for fault in faults:
        print(fault)
    print(f"check_layers: {len(files)} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
