"""The check of classes counts what is a method and nothing else, and refuses classes of many."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECK = ROOT / "tools" / "check_classes.py"
sys.path.insert(0, str(ROOT / "tools"))
import check_classes  # noqa: E402  (tools/ is no package)


def methods(body: str) -> int:
    """Of a class with this body."""
    return check_classes.methods_in(f"namespace brant {{\nclass Wire {{\n{body}\n}};\n}}\n")["Wire"]


@pytest.mark.parametrize(
    "one",
    [
        "void send();",
        "int size() const { return size_; }",
        "private: [[nodiscard]] static constexpr int bound() noexcept { return 3; }",
        "virtual void close() = 0;",
        "auto begin() const -> decltype(list_.begin());",
        "template <typename T, typename = std::enable_if_t<(sizeof(T) > 4)>> void put(const T& value);",
        "template <auto Method> requires std::integral<int> && (sizeof(int) == 4) void call() { run<Method>(); }",
        "template <typename T> void take(T&& t) requires requires { t.size(); };",
        "std::map<int, std::vector<std::pair<int, int>>> pairs() const;",
        "std::function<void(int)> handler();",
        "Wire& operator=(const Wire& other);",
        "bool operator<(const Wire& other) const noexcept { return number < other.number; }",
        "bool operator()(int a, int b) const;",
        "explicit operator bool() const { return true; }",
        "operator std::vector<int>() const;",
        "void operator delete(void* block);",
        "auto operator<=>(const Wire&) const;",
        "void* operator new[](std::size_t bytes);",
        "void with_callback(void (*ended)(int, char), int (*other)(int) = nullptr);",
        "void (*signal(int number, void (*handler)(int)))(int);",  # returns a pointer to a function
        "BRANT_API Status open(int id = kDefault, char end = ')', std::string text = \"};\");",
        "__attribute__((noinline)) void slow();",
        "void brace(Options options = {}) { if (x) { y(); } }",
        "friend class Engine; void after_a_friend();",
        "noexcept_t odd() noexcept(noexcept(f()));",
        "int at(std::size_t i) { return a[b[i]]; }",
        "// void not_this();\n/* nor(); */ void this_one();",
        "#define HIDDEN void hidden();\nvoid shown();",
        'const char* text() { return R"x(}; void no(); )")x"; }',
        "int digits() { return 1'000'000; }",
        "other::Wire copy();",
    ],
)
def test_counts_one_method(one):
    assert methods(one) == 1
    assert methods(f"int before_ = 0;\n{one}\nint after_;") == 1
    assert methods(f"void first();\n{one}\nvoid last() {{}}") == 3


@pytest.mark.parametrize(
    "none",
    [
        "int number_ = f(3);",
        "std::array<int, sizeof(long)> bytes_{};",
        "Wire(); explicit Wire(int number) : number_(number), list_{1, 2} { open(); }",
        "template <typename T> Wire(T t) : base<T>(t) {}",
        "~Wire(); ",
        "virtual ~Wire() = default;",
        "Wire(const Wire&) = delete; Wire& operator=(const Wire&) = delete;",
        "bool operator==(const Wire&) const = default;",
        "void never(int) = delete;",
        "void (*deliver)(void* storage, int) noexcept = nullptr;",
        "void (Engine::*step_)(int) = &Engine::step;",
        "int (&table_)[3];",
        "std::function<void(int)> handler_;",
        "std::function<int(std::pair<int, int>)> other_ = [](auto pair) { return f(pair); };",
        "friend class Engine; friend void swap(Wire& a, Wire& b); friend void take(Wire& a) noexcept { a.swap(b); }",
        "friend bool operator==(const Wire& a, const Wire& b) = default;",
        "alignas(std::max_align_t) std::byte storage_[16];",
        "decltype(f(1)) result_;",
        "unsigned closed_ : 1;",
        "using Handler = void (*)(int); typedef int Old(char);",
        "static_assert(sizeof(int) == 4);",
        "enum class State { open = f(1), closed }; enum { kFew = 3 };",
        "struct Point { int x; } origin_;",
        "struct Forward; class Forward* next_; struct Forward other_(int) = delete;",
        "TimePoint begin_ = Clock::now(), end_ = begin_ + (a < b ? 1 : 2);",
        "BRANT_CHARE(Wire)",
        "public: protected: private:",
    ],
)
def test_counts_no_method(none):
    assert methods(none) == 0
    assert methods(f"void first();\n{none}\nvoid last();") == 2


def test_names_nested_classes_and_specialisations_apart():
    text = """
    template <typename T, class U = int> class BRANT_API Table final : public Base<T, (1 > 0)>, Other {
     public:
      class Line { void one(); struct Deep { void two(); void three(); }; };
      Line line();
    };
    template <> struct Table<int, char> { void four(); };
    struct Table<int>::Row { void five(); };
    enum class Kind : unsigned { a, b };
    class Declared;
    union { int a; float b; } both;
    struct alignas(64) [[nodiscard]] Padded { void six(); };
    extern "C" { struct Plain { int number; }; }
    inline Table<int> make(struct Options* options) { struct Local { void seven(); }; return {}; }
    """
    assert check_classes.methods_in(text) == {
        "Table": 1,
        "Table::Line": 1,
        "Table::Line::Deep": 2,
        "Table<int,char>": 1,
        "Table<int>::Row": 1,
        "unnamed": 0,
        "Padded": 1,
        "Plain": 0,
    }


@pytest.mark.parametrize("text", ["class A { void f() {", "namespace a { class A {};", "}", "void f(] {}"])
def test_says_so_of_what_it_cannot_read(text):
    with pytest.raises(check_classes.Unreadable):
        check_classes.methods_in(text)


def check(root: pathlib.Path, count: int) -> subprocess.CompletedProcess[str]:
    """The tool, over a tree with one class of so many methods."""
    (root / "src").mkdir(exist_ok=True)
    (root / "src" / "wire.h").write_text("class Wire {" + "".join(f"void f{i}();" for i in range(count)) + "};")
    return subprocess.run([sys.executable, CHECK, root], text=True, capture_output=True)


def test_accepts_fewer_than_the_bound(tmp_path):
    done = check(tmp_path, 39)
    assert (done.returncode, done.stdout) == (0, "check_classes: 1 classes in 1 headers, 0 faults\n")


def test_refuses_the_bound(tmp_path):
    done = check(tmp_path, 40)
    assert done.returncode == 1
    assert "src/wire.h: Wire has 40 methods: a class has fewer than 40" in done.stdout


def test_a_header_that_cannot_be_read_is_a_fault(tmp_path):
    check(tmp_path, 1)
    (tmp_path / "src" / "odd.h").write_text("class Odd { void f(")
    done = subprocess.run([sys.executable, CHECK, tmp_path], text=True, capture_output=True)
    assert done.returncode == 1
    assert "src/odd.h: could not be read as C++" in done.stdout


def test_this_tree_keeps_the_bound():
    done = subprocess.run([sys.executable, CHECK], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
