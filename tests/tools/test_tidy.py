#!/usr/bin/env python3
"""tools/tidy finds what it promises to find, in small trees made for each rule."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))
from lines import LineResult  # noqa: E402

TIDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/tidy")
CMAKE = """# tutti_module(comment DEPENDS base)
tutti_module(base)
tutti_module(model DEPENDS base)
tutti_module(scheduler DEPENDS model)
tutti_module(state DEPENDS model LIBS base_is_no_dependency)
tutti_module(cli DEPENDS scheduler
  state LIBS dl)
"""
HEADER = "// What it is.\n#pragma once\n"


class TidyTest(unittest.TestCase):
    def findings(self, files, *options):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {"CMakeLists.txt": CMAKE, **files}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            run = subprocess.run([TIDY, "--root", root, *options], capture_output=True, text=True, check=False)
            self.assertEqual(run.stderr, "")
            self.assertEqual(run.returncode, 1 if run.stdout else 0)
            self.allow_after = None
            if "tools/tidy.allow" in files:
                with open(os.path.join(root, "tools/tidy.allow"), encoding="utf-8") as file:
                    self.allow_after = file.read()
            return run.stdout.splitlines()

    def assert_rules(self, files, *expected):
        self.assertEqual([line.split(": ")[0] + " " + line.split(": ")[1] for line in self.findings(files)],
                         list(expected))

    def test_a_clean_tree_is_silent(self):
        self.assert_rules({"src/base/a.h": HEADER, "src/model/b.cpp": '#include "base/a.h"\n',
                           "src/cli/c.cpp": '#include "base/a.h"\n'})

    def test_includes_run_downwards_only(self):
        self.assert_rules({"src/base/a.h": HEADER + '#include "model/b.h"\n', "src/model/b.h": HEADER,
                           "src/state/s.cpp": '#include "scheduler/p.h"\n#include "base/a.h"\n',
                           "src/scheduler/p.h": HEADER},
                          "src/base/a.h:3 include", "src/state/s.cpp:1 include")

    def test_includes_that_lead_nowhere_and_unknown_modules(self):
        self.assert_rules({"src/base/a.cpp": '#include "base/gone.h"\n', "src/web/x.cpp": "\n"},
                          "src/base/a.cpp:1 include", "src/web/x.cpp:1 module")

    def test_sizes(self):
        self.assert_rules({"src/base/a.h": HEADER + "\n" * 249, "src/base/b.cpp": "\n" * 601,
                           "src/base/c.cpp": "\n" * 600, "src/base/d.h": HEADER + "\n" * 248},
                          "src/base/a.h:1 file-size", "src/base/b.cpp:1 file-size")

    def test_long_functions_of_each_form(self):
        body = "  step();\n" * 69
        long = {
            "plain": "int f(int x) {\n" + body + "}\n",
            "member": "namespace tutti {\nResult<int> Core::g(\n    const A& a) const {\n" + body + "}\n}\n",
            "nested": "struct S {\n  int h() const {\n" + body + "  }\n};\n",
            "test": "TEST_F(Fixture, Name) {\n" + body + "}\n",
            "initialised": "S::S(int x)\n    : x_(x), y_{1} {\n" + body + "}\n",
            "template": "template <class T>\nvoid t(T x) {\n" + body + "}\n",
        }
        for form, text in long.items():
            found = self.findings({"src/base/a.cpp": text})
            self.assertEqual(len(found), 1, (form, found))
            self.assertIn("function-size", found[0])

    def test_what_is_no_long_function(self):
        row = '    {"name { (", 1},\n' * 80
        self.assert_rules({"src/base/table.cpp": "namespace a {\nconstexpr Row kTable[] = {\n" + row + "};\n}\n",
                           "src/base/type.cpp": "struct S : Base<int> {\n" + "  int f(int);\n" * 80 + "};\n",
                           "src/base/two.cpp": "void f() {\n" + "  x();\n" * 50 + "}\nvoid g() {\n" + "  x();\n" * 50 + "}\n"})

    def test_the_core_is_pure(self):
        impure = ["auto t = std::chrono::system_clock::now();", "auto t = time(nullptr);", "int r = rand();",
                  'auto* e = getenv("X");', 'system("ls");', "fork();", "usleep(1);", "std::mutex m;"]
        for line in impure:
            for path, expected in (("src/state/a.cpp", 1), ("src/cli/a.cpp", 0)):
                self.assertEqual(len(self.findings({path: f"void f() {{ {line} }}\n"})), expected, (path, line))
        self.assert_rules({"src/state/a.cpp": '// rand() and time(nullptr)\nauto s = "getenv(x)";\nx.time(0); a.system(1);\n'})

    def test_iteration_in_hash_order(self):
        declared = "std::unordered_map<int, std::string> table_;\n"
        self.assert_rules({"src/scheduler/a.cpp": declared + "void f() {\n  for (auto& [k, v] : table_) use(k);\n}\n"},
                          "src/scheduler/a.cpp:3 unordered")
        self.assert_rules({"src/state/a.cpp": declared + "auto x = self.table_.begin();\n"}, "src/state/a.cpp:2 unordered")
        self.assert_rules({"src/state/a.cpp": declared + "auto x = table_.find(3);\n"})

    def test_patterns(self):
        self.assert_rules({"src/cli/a.cpp": "#include <iostream>\nusing namespace std;\nvoid f() try {} catch (...) {}\n"},
                          "src/cli/a.cpp:1 iostream", "src/cli/a.cpp:2 using-namespace", "src/cli/a.cpp:3 catch-all")
        self.assert_rules({"src/cli/a.h": HEADER + "#include <sqlite3.h>\n"}, "src/cli/a.h:3 heavy-include")

    def test_headers_and_names(self):
        self.assert_rules({"src/base/a.h": "#pragma once\n", "src/base/b.h": "// What.\n", "src/base/Bad.cpp": "\n"},
                          "src/base/Bad.cpp:1 file-name", "src/base/a.h:1 header-comment", "src/base/b.h:1 pragma-once")

    def test_unfinished_marks_and_machine_paths(self):
        self.assert_rules({"src/base/a.cpp": "// TO" "DO: later\n", "bin/x": "cd /wo" "rk/wt/me\n"},
                          "bin/x:1 machine-path", "src/base/a.cpp:1 unfinished")

    def test_documents_are_linked_and_links_lead_somewhere(self):
        self.assert_rules({"docs/README.md": "[a](a.md) [b](gone.md)\n", "docs/a.md": "[up](README.md#x)\n", "docs/c.md": ""},
                          "docs/README.md:1 dead-link", "docs/c.md:1 docs-index")

    def test_each_reason_occurs_in_a_test(self):
        reasons = HEADER + "\n".join(f'inline constexpr std::string_view {k} = "{w}";'
                                     for k, w in (("kOne", "one"), ("kTwo", "two"), ("kThree", "three")))
        self.assert_rules({"src/model/reasons.h": reasons, "tests/unit/a.cpp": "reason::kOne\n", "tests/b.txt": "waits: two\n"},
                          "src/model/reasons.h:5 reason-untested")

    def test_exceptions_need_a_reason_and_only_shrink(self):
        long = {"src/base/a.cpp": "int f() {\n" + "  x();\n" * 80 + "}\n"}
        self.assert_rules({**long, "tools/tidy.allow": "function-size src/base/a.cpp:f 82  # a table in words\n"})
        self.assert_rules({**long, "tools/tidy.allow": "function-size src/base/a.cpp:f 81  # grew\n"},
                          "src/base/a.cpp:1 function-size")
        self.assert_rules({**long, "tools/tidy.allow": "function-size src/base/a.cpp:f 82\n"},
                          "src/base/a.cpp:1 function-size", "tools/tidy.allow:1 allow")
        self.assert_rules({"tools/tidy.allow": "file-size src/base/gone.cpp 700  # gone\n"}, "tools/tidy.allow:1 allow")

    def test_the_ratchet_drops_and_tightens(self):
        files = {"src/base/a.cpp": "int f() {\n" + "  x();\n" * 80 + "}\n",
                 "tools/tidy.allow": "# why\nfunction-size src/base/a.cpp:f 99  # a table\nfile-size src/base/b.cpp 700  # gone\n"}
        self.assertEqual(self.findings(files, "--ratchet"), [])
        self.assertEqual(self.allow_after, "# why\nfunction-size src/base/a.cpp:f 82  # a table\n")


if __name__ == "__main__":
    sys.exit(LineResult.run(TidyTest))
