"""Makes the sources that follow from functions.txt: python generate.py functions.txt OUTPUT_FOLDER

mpi_functions.h  the prototypes, which mpi.h includes
api.h            the functions that brant implements, as brant::mpi::api::name
exports.cc       MPI_ and PMPI_ names: conversions to the large forms, and what is not implemented
libmpi_abi.map   the version script: these names and no others
coverage.inc     what is implemented, by chapter
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

SMALL = {"COUNT": "int", "DISP": "int", "BYTES": "MPI_Aint"}
LARGE = {"COUNT": "MPI_Count", "DISP": "MPI_Aint", "BYTES": "MPI_Count"}
LENGTHS = {"comm": "api::member_count(comm)", "comm at root": "api::member_count_at_root(comm, root)"}
LENGTHS |= {"group": "api::group_count(comm)"}
LENGTHS |= {"sources": "api::source_count(comm)", "destinations": "api::destination_count(comm)"}


def symbol(name, profiled=False):
    """MPIX_ names are written X_Name in the table."""
    return f"{'P' if profiled else ''}MPI{'' if name.startswith('X_') else '_'}{name}"


@dataclass
class Parameter:
    kind: str  # with COUNT, DISP or BYTES where it has two forms
    name: str
    suffix: str  # of the declaration: "", "[]", "[][3]"
    length: str

    @property
    def wide(self):
        """Which of the words of two forms it has, or none."""
        return next((word for word in SMALL if re.search(rf"\b{word}\b", self.kind)), None)

    def declare(self, forms):
        kind = re.sub(r"\b(COUNT|DISP|BYTES)\b", lambda m: forms[m[1]], self.kind)
        return f"{kind} {self.name}{self.suffix}".strip()


@dataclass
class Function:
    name: str
    result: str
    chapter: str
    implemented: bool
    two_forms: bool
    parameters: list = field(default_factory=list)

    def names(self):
        return [self.name, f"{self.name}_c"] if self.two_forms else [self.name]

    def call(self, name, arguments):
        """Of the function in brant::mpi::api, with the arguments that stand for the parameters by their names."""
        listed = [arguments.get(p.name, p.name) for p in self.parameters if p.name != "..."]
        if self.launch:
            dropped = ("request", "info")
            listed = [a for a, p in zip(listed, self.parameters, strict=True) if p.name not in dropped]
            request = ", request" if self.launch[0] != "run" else ""
            listed.insert(0, f'Launch::{self.launch[0]}("MPI_{name}"{request})')
        return f"api::{self.api}({', '.join(listed)})"

    def signature(self, forms):
        return ", ".join(p.declare(forms) for p in self.parameters) or "void"

    @property
    def launch(self):
        """Of a collective: how it was called, and the name of what carries it out in all of its forms; else None."""
        names = [p.name for p in self.parameters]
        collective = self.chapter == "Collective communication" or "eighbor_all" in self.name
        if not collective or "comm" not in names:
            return None
        if self.name.endswith("_init"):
            return "prepare", self.name.removesuffix("_init").lower()
        if "request" in names:
            return "begin", self.name[1:].lower()
        return "run", self.name.lower()

    @property
    def takes_turns(self):
        """Not what looks at nothing that calls change, nor what ends the job."""
        return self.result == "int" and self.name not in ("Abort", "Initialized", "Finalized", "Is_thread_main")

    @property
    def api(self):
        return self.launch[1] if self.launch else self.name.lower()


def read_parameter(text):
    if text == "...":  # of MPI_Pcontrol, which nobody looks at
        return Parameter("", "...", "", "")
    match = re.fullmatch(r"(.*?)\s*(\w+)(?:\[([\w ]*)\](.*))?", text.strip())
    is_array = match[3] is not None
    return Parameter(match[1], match[2], f"[]{match[4]}" if is_array else "", match[3] or "")


def read_function(line, chapter):
    match = re.fullmatch(r"(\+ )?(_c )?(?:(\w+) )?(\w+)\((.*)\)", line)
    if match is None:
        raise SystemExit(f"functions.txt: no function: {line}")
    parameters = [read_parameter(text) for text in match[5].split(", ") if text]
    two_forms = match[2] is not None or any(p.wide for p in parameters)
    return Function(match[4], match[3] or "int", chapter, match[1] is not None, two_forms, parameters)


def read_functions(path):
    functions, chapter = [], ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            chapter = line.strip("[]")
        elif line and not line.startswith("#"):
            functions.append(read_function(line, chapter))
    return functions


def forms_of(function):
    """(name, types of the words) for each form."""
    yield function.name, SMALL
    if function.two_forms:
        yield f"{function.name}_c", LARGE


def prototypes(functions):
    lines = [
        "/* Made by generate.py from the table of the functions: see mpi.h, which includes it. */",
        "#pragma once",
        "",
    ]
    lines += [
        "/* NOLINTBEGIN: names and forms are the standard's. */",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for profiled in (False, True):
        for function in functions:
            for name, forms in forms_of(function):
                lines.append(f"{function.result} {symbol(name, profiled)}({function.signature(forms)});")
        lines.append("")
    return [*lines, "#ifdef __cplusplus", "}", "#endif", "/* NOLINTEND */"]


def api(functions):
    lines = ["// Made by generate.py from the table of the functions.", "#pragma once", ""]
    lines += [
        '#include "brant/base/api.h"',
        '#include "brant/mpi/mpi.h"',
        '#include "models/mpi/launch.h"',
        "",
        "namespace brant::mpi::api {",
        "",
    ]
    for function in functions:
        if function.implemented and (not function.launch or function.launch[0] == "run"):
            parameters = [p.declare(LARGE) for p in function.parameters if p.name != "..."]
            if function.launch:
                parameters.insert(0, "const Launch& how")
            signature = ", ".join(parameters)
            lines.append(f"BRANT_API {function.result} {function.api}({signature}) noexcept;")
    return [*lines, "", "}  // namespace brant::mpi::api"]


def refusal(function, name):
    """What is not implemented fails as its chapter says."""
    if function.name.startswith("T_"):
        return "return MPI_T_ERR_NOT_SUPPORTED;"
    if function.result != "int":
        return f'return api::refuse_result<{function.result}>("MPI_{name}");'
    comm = next((p.name for p in function.parameters if p.kind == "MPI_Comm"), None)
    file = function.chapter == "Files"
    return f'return api::refuse{"_file" if file else ""}("MPI_{name}"{f", {comm}" if comm and not file else ""});'


def narrow_call(function, name):
    """The body of the small form: parameters are widened, and results narrowed."""
    before, after, arguments = [], [], {}
    if function.chapter == "Datatypes":  # types remember by which form they were made
        before.append("const api::SmallForm form;")
    for p in function.parameters:
        wide = p.wide
        if wide is None or (not p.suffix and "*" not in p.kind):
            continue
        if p.suffix:
            length = LENGTHS.get(p.length, p.length)
            before.append(f"const api::Widened<{SMALL[wide]}, {LARGE[wide]}> {p.name}_c({p.name}, {length});")
            arguments[p.name] = f"{p.name}_c.data()"
        else:
            before.append(f"api::Narrowed<{SMALL[wide]}, {LARGE[wide]}> {p.name}_c({p.name});")
            arguments[p.name] = f"{p.name}_c.wide()"
            after.append(p.name)
    call = function.call(name, arguments)
    if not after:
        return [*before, f"return {call};"]
    return [
        *before,
        f"const int outcome = {call};",
        *(f"{place}_c.store(outcome);" for place in after),
        "return outcome;",
    ]


def exports(functions):
    lines = ["// Made by generate.py from the table of the functions.", '#include "models/mpi/export_forms.h"']
    lines += ['#include "models/mpi/call_turns.h"']
    lines += ['#include "mpi_generated/api.h"', "", "using namespace brant::mpi;  // NOLINT", "", 'extern "C" {', ""]
    for function in functions:
        for name, forms in forms_of(function):
            if not function.implemented:
                body = [refusal(function, name)]
            elif function.two_forms and forms is SMALL:
                body = narrow_call(function, name)
            else:
                body = [f"return {function.call(name, {})};"]
            if function.takes_turns:
                body.insert(0, "const Turn turn;")
            lines.append(f"MPI_EXPORT {function.result} {symbol(name, True)}({function.signature(forms)}) {{")
            lines += [f"  {line}" for line in body]
            lines += [
                "}",
                f"MPI_EXPORT {function.result} {symbol(name)}({function.signature(forms)})"
                f' __attribute__((weak, alias("{symbol(name, True)}")));',
                "",
            ]
    return [*lines, '}  // extern "C"']


def version_script(functions):
    names = [name for function in functions for name, _ in forms_of(function)]
    return ["{", "  global:", *(f"    {symbol(n)};\n    {symbol(n, True)};" for n in names), "  local:", "    *;", "};"]


def coverage(functions):
    """One row for each name; a C++ array's content."""
    return [
        f'{{"{function.chapter}", "{symbol(name)}", {"true" if function.implemented else "false"}}},'
        for function in functions
        for name, _ in forms_of(function)
    ]


def main():
    functions = read_functions(Path(sys.argv[1]))
    folder = Path(sys.argv[2])
    outputs = {
        "include/mpi_functions.h": prototypes,
        "mpi_generated/api.h": api,
        "exports.cc": exports,
        "libmpi_abi.map": version_script,
        "mpi_generated/coverage.inc": coverage,
    }
    for name, make in outputs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(make(functions)) + "\n"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
