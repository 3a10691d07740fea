"""Makes the sources of libmpi.so.12: generate_mpich.py functions.txt mpich_functions.txt mpich.txt mpi.h OUTPUT_FOLDER

mpich_constants.h  the numbers of MPICH's ABI beside those of the standard's
mpich_exports.cc   MPI_ and PMPI_ names: what they get and give is translated by src/models/mpi/mpich
libmpi.map         the version script: these names and no others
"""

import re
import sys
from pathlib import Path

from generate import LARGE, LENGTHS, SMALL, forms_of, read_functions, symbol

# Written by hand in src/models/mpi/mpich, as brant::mpi::mpich::own::name.
OWN = {"Attr_get", "Comm_get_attr", "Comm_create_errhandler", "Comm_create_keyval", "File_create_errhandler"}
OWN |= {"Abi_get_version", "Get_library_version", "Get_processor_name"}
OWN |= {"Grequest_start", "Keyval_create", "Op_create", "Op_create_c"}
OWN |= {"Register_datarep", "Register_datarep_c", "Session_create_errhandler", "Type_create_keyval"}
OWN |= {"T_event_get_info", "Type_get_contents", "Type_get_contents_c", "Win_create_errhandler", "Win_create_keyval"}
OWN |= {"Win_get_attr"}
# These store statuses after they have returned, or hand out a handle that the program has already.
OWN |= {"X_Comm_get_stream", "X_Recv_enqueue", "X_Wait_enqueue", "X_Waitall_enqueue"}
DATA = ["MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_T_PVAR_ALL_HANDLES", "MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE"]
DATA += ["MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE", "MPIR_Dup_fn"]

# Handles that a call may free, or must leave as they are.
CHANGED = re.compile(
    r"(\w+_free|Comm_disconnect|Session_finalize|File_close|Wait|Test|Start|Cancel|I?[Mm]recv|Type_commit)$"
)
INTEGER = re.compile(r"(?!Status)\w+_(toint|fromint|c2f|f2c)$")
POINTER = re.compile(r"NULL|IGNORE|BOTTOM")
IN_PLACE = {"sendbuf", "recvbuf"}
RANKS = {"source", "dest", "rank", "root", "target_rank", "local_leader", "remote_leader"}
TAGS = {"tag", "sendtag", "recvtag"}
KEYS = {"keyval", "comm_keyval", "type_keyval", "win_keyval"}
CODES = {"error", "errorclass", "errorcode"}
# What an int means that has this name, by the section of mpich.txt; both as arguments and as results.
MEANINGS = {
    "required": "thread_levels",
    "provided": "thread_levels",
    "result": "comparisons",
    "status": "topologies",
    "split_type": "split_types",
    "lock_type": "locks",
    "whence": "seeks",
    "order": "orders",
    "array_of_distribs": "distributions",
    "combiner": "combiners",
    "typeclass": "type_classes",
    "verbosity": "verbosities",
    "bind": "bindings",
    "scope": "scopes",
    "var_class": "variable_classes",
}
FLAGS = {"assert": "assertions", "amode": "access_modes"}
ENUMS = {"MPI_T_cb_safety": "callback_safeties", "MPI_T_source_order": "source_orders"}


def camel(words):
    return "".join(word.capitalize() for word in re.split(r"[_ ]", words))


def read_constants(path):
    """Section -> (name, number as it is written, perhaps the name of its like in the standard's ABI)."""
    sections, section = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(tuple(line.split()))
    return sections


def read_handles(path):
    """Name of a predefined handle -> its number in the standard's ABI."""
    return dict(re.findall(r"#define (MPIX?_\w+) \(\(MPIX?_\w+\)(0x[0-9a-f]+)\)", path.read_text()))


# Constants
# ----------------------------------------------------------------------------------------------------------------------


def constants(sections, handles):
    lines = ["// Made by generate_mpich.py from the numbers of MPICH's ABI.", "#pragma once", ""]
    lines += ["#include <array>", "#include <cstdint>", "", '#include "brant/mpi/mpi.h"', ""]
    lines += ["namespace brant::mpi::mpich {", ""]
    lines += [
        "/// A predefined handle in both ABIs.",
        "struct Predefined {",
        "  int mpich;",
        "  std::uint16_t abi;",
        "};",
    ]
    lines += ["/// The numbers of something in both.", "struct Value {", "  int mpich;", "  int abi;", "};", ""]
    lines += ["template <typename Handle>", "inline constexpr std::array<Predefined, 0> kPredefined{};"]
    for section, known in sections.items():
        if section == "plain":
            lines += [f"inline constexpr int k{camel(name[4:])} = {number};" for name, number in known]
        elif section == "same":
            # Null pointers are no constants that a compiler compares.
            numbers = [(name, number) for name, number in known if not POINTER.search(name)]
            lines += [f"static_assert({name} == {number});" for name, number in numbers]
        elif section[0].isupper():
            kind = symbol(section)
            # What stands for another one goes last, and of several the last is the one that brant hands out.
            rows = ", ".join(
                f"{{static_cast<int>({words[1]}), {handles[words[-1] if words[2:] else words[0]]}}}"
                for words in sorted(known, key=len)
            )
            lines.append(
                f"template <>\ninline constexpr std::array<Predefined, {len(known)}> kPredefined<{kind}>{{{{{rows}}}}};"
            )
        elif section != "unknown":
            rows = ", ".join(f"{{{number}, {name}}}" for name, number in known)
            lines.append(f"inline constexpr std::array<Value, {len(known)}> k{camel(section)}{{{{{rows}}}}};")
    return [*lines, "", "}  // namespace brant::mpi::mpich"]


# Exports
# ----------------------------------------------------------------------------------------------------------------------


class Translation:
    """Of one function, in one of its forms."""

    def __init__(self, function, forms, handles):
        self.function = function
        self.forms = forms
        self.handles = handles  # names of the classes

    def is_handle(self, kind):
        return kind.removeprefix("MPI").removeprefix("_") in self.handles or kind == "MPI_File"

    def declare(self, p):
        """The parameter as MPICH's programs pass it."""
        kind = re.sub(r"\b(COUNT|DISP|BYTES)\b", lambda m: self.forms[m[1]], p.kind)
        kind = re.sub(r"\bMPI(?:_|(?=X_))(\w+)\b", lambda m: "int" if m[1] in self.handles else m[0], kind)
        kind = re.sub(r"\bMPI_Status\b", "Status", kind)
        if not self.function.name.startswith("T_"):
            kind = re.sub(r"\bMPI_(\w+_function(?:_c)?)\b", lambda m: camel(m[1]), kind)
        return f"{kind} {p.name}{p.suffix}".strip()

    def length(self, p):
        text = p.length
        if not text:  # MPI_Status* array_of_statuses
            names = [q.name for q in self.function.parameters]
            text = "incount" if "incount" in names else "count"
        known = LENGTHS.get(text, text)
        return re.sub(r"\bcomm\b", "to_abi<MPI_Comm>(comm)", known)

    def argument(self, p):
        """What brant gets for it."""
        kind = p.kind.removeprefix("const ")
        bare = kind.rstrip("*")
        if p.wide:
            return self.wide(p)
        if bare == "MPI_Status":
            return self.status(p)
        if self.is_handle(bare):
            return self.handle(p, kind, bare)
        if bare in ENUMS:
            table = f"k{camel(ENUMS[bare])}"
            if kind != bare:
                return f"ToldEnum<{bare}, {told(table)}>({p.name})"
            return f"static_cast<{bare}>(value_to_abi({table}, {p.name}, kMeaningless))"
        if bare == "int":
            return self.number(p, "*" in kind)
        return self.place(p, kind)

    def wide(self, p):
        small, large = SMALL[p.wide], LARGE[p.wide]
        narrow = self.forms is SMALL
        if p.suffix:
            return f"api::Widened<{small}, {large}>({p.name}, {self.length(p)}).data()" if narrow else p.name
        if "*" in p.kind:
            return f"ToldCount<{small}, {large}>({p.name})" if narrow else p.name
        return p.name

    def status(self, p):
        if p.name == "array_of_statuses":
            return f"ToldStatuses({p.name}, {self.length(p)})"
        if p.kind.startswith("const"):
            return f"GivenStatus({p.name})"
        return f"{'ChangedStatus' if self.function.name.startswith('Status_set') else 'ToldStatus'}({p.name})"

    def handle(self, p, kind, bare):
        if p.suffix:
            if p.kind.startswith("const"):
                return f"Handles<{bare}>({p.name}, {self.length(p)})"
            return f"ChangedRequests({p.name}, {self.length(p)})"
        if kind == bare:
            return f"to_abi<{bare}>({p.name})"
        changed = CHANGED.match(self.function.name) and bare in CHANGED_CLASSES.get(self.function.name, (bare,))
        return f"{'Changed' if changed else 'Made'}<{bare}>({p.name})"

    def number(self, p, is_result):
        name, function = p.name, self.function.name
        if name == "errorcode" and function == "Abort":  # the program's own
            return name
        if name in ("ranks1", "ranks2"):
            return f"{'Given<rank_to_abi>' if name == 'ranks1' else 'ToldAll<rank_to_mpich>'}({name}, {self.length(p)})"
        if name == "array_of_errcodes":  # only the root knows how many
            return f"error_codes_of_spawn({name})"
        if name == "array_of_dargs":
            return f"Given<distribution_argument_to_abi>({name}, {self.length(p)})"
        if name in MEANINGS and p.suffix:
            return f"Given<{given(f'k{camel(MEANINGS[name])}')}>({name}, {self.length(p)})"
        if name in ("rank_source", "rank_dest") or (function == "Status_get_source" and name == "source"):
            return f"Told<rank_to_mpich>({name})"
        if p.suffix or (is_result and name in RANKS):
            return name
        for names, what in ((RANKS, "rank"), (TAGS, "tag"), (KEYS, "key"), (CODES, "code")):
            if name in names:
                changed = f"ChangedKey({name})" if what == "key" and "free" in function else None
                return (changed or f"Told<{what}_to_mpich>({name})") if is_result else f"{what}_to_abi({name})"
        if name in MEANINGS:
            table = f"k{camel(MEANINGS[name])}"
            return f"Told<{told(table)}>({name})" if is_result else f"value_to_abi({table}, {name}, kMeaningless)"
        if name in FLAGS:
            table = f"k{camel(FLAGS[name])}"
            return f"Told<{told(table, 'flags')}>({name})" if is_result else f"flags_to_abi({table}, {name})"
        return name

    def place(self, p, kind):
        function = self.function.name
        if p.name in IN_PLACE and kind == "void*":
            return f"place_to_abi({p.name})"
        if p.name == "buffer" and kind == "void*" and "attach" in function:
            return f"buffer_to_abi({p.name})"
        if p.name == "buffer_addr":
            return f"DetachedBuffer({p.name})"
        if function == "File_set_view" and p.name == "disp":
            return f"displacement_to_abi({p.name})"
        if function == "Info_get_nthkey" and p.name == "key":
            return f"ToldText<kMaxInfoKey, MPI_MAX_INFO_KEY>({p.name})"
        if p.name == "port_name" and p.kind == "char*":  # not where it is given: brant's own are shorter than both
            return f"ToldText<kMaxPortName, MPI_MAX_PORT_NAME>({p.name})"
        return p.name

    def refusal(self, name):
        """As in generate.py, of what brant does not implement."""
        if self.function.name.startswith("T_"):
            return "code_to_mpich(MPI_T_ERR_NOT_SUPPORTED)"
        comm = next((p.name for p in self.function.parameters if p.kind == "MPI_Comm"), None)
        return f'code_to_mpich(api::refuse("MPI_{name}"{f", to_abi<MPI_Comm>({comm})" if comm else ""}))'

    def body(self, name):
        named = [p for p in self.function.parameters if p.name != "..."]
        own = f"return own::{self.function.name.lower()}({', '.join(p.name for p in named)});"
        if INTEGER.match(self.function.name):  # as integers handles are what they are
            return [own if self.function.name.startswith("File") else f"return {named[0].name};"]
        if self.function.name in OWN or self.function.chapter in MORE_CHAPTERS:
            return [own]
        if not self.function.implemented:
            return [f"return {self.refusal(name)};"]
        call = self.function.call(name, {p.name: self.argument(p) for p in named})
        launch = self.function.launch
        if launch and launch[0] != "run":
            call = call.replace('", request)', '", Made<MPI_Request>(request))', 1)
        before = []
        if self.function.chapter == "Datatypes" and self.function.two_forms and self.forms is SMALL:
            before = ["const api::SmallForm form;"]
        return [*before, f"return {call};" if self.function.result != "int" else f"return code_to_mpich({call});"]


MORE_CHAPTERS = ("Removed names", "Fortran", "Additions of MPICH")
# Of calls that free one handle and make or read others, the class that they free.
CHANGED_CLASSES = {"Imrecv": ("MPI_Message",), "Mrecv": ("MPI_Message",)}


def told(table, what="value"):
    return f"[](int value) {{ return {what}_to_mpich({table}, value); }}"


def given(table):
    return f"[](int value) {{ return value_to_abi({table}, value, kMeaningless); }}"


def symbols(name):
    return symbol(name), symbol(name, True)


def exports(functions, handles):
    lines = ["// Made by generate_mpich.py from the table of the functions.", '#include "mpi_generated/api.h"']
    lines += [
        '#include "models/mpi/call_turns.h"',
        '#include "models/mpi/mpich/arguments.h"',
        '#include "models/mpi/mpich/own_calls.h"',
        "",
    ]
    lines += ["namespace brant::mpi::mpich {", ""]
    for function in functions:
        for name, forms in forms_of(function):
            translation = Translation(function, forms, handles)
            parameters = ", ".join(translation.declare(p) for p in function.parameters)
            result = "int" if function.result.removeprefix("MPI_") in handles else function.result
            weak, strong = symbols(name)
            lines.append(f'MPI_EXPORT {result} call_{name}({parameters}) __asm__("{strong}");')
            lines.append(f"{result} call_{name}({parameters}) {{")
            turn = ["const Turn turn;"] if function.takes_turns else []
            lines += [f"  {line}" for line in turn + translation.body(name)]
            lines += ["}"]
            lines.append(
                f'MPI_EXPORT {result} weak_{name}({parameters}) __asm__("{weak}")'
                f' __attribute__((weak, alias("{strong}")));'
            )
            lines.append("")
    return [*lines, "}  // namespace brant::mpi::mpich"]


def version_script(functions):
    names = [s for function in functions for name, _ in forms_of(function) for s in symbols(name)] + DATA
    return ["{", "  global:", *(f"    {name};" for name in names), "  local:", "    *;", "};"]


def main():
    functions = read_functions(Path(sys.argv[1])) + read_functions(Path(sys.argv[2]))
    sections = read_constants(Path(sys.argv[3]))
    handles = {section for section in sections if section[0].isupper()}
    folder = Path(sys.argv[5])
    outputs = {
        "mpi_generated/mpich_constants.h": constants(sections, read_handles(Path(sys.argv[4]))),
        "mpich_exports.cc": exports(functions, handles),
        "libmpi.map": version_script(functions),
    }
    for name, lines in outputs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(lines) + "\n"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
