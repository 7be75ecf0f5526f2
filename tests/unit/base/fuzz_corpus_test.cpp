// The fuzz targets of base, run over their corpus and mutations of it.
#include "tests/fuzz/replay.h"

// clang-format off
#define LLVMFuzzerTestOneInput fuzz_hostlist
#include "tests/fuzz/hostlist_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_array
#include "tests/fuzz/array_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_quantity
#include "tests/fuzz/quantity_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_gres
#include "tests/fuzz/gres_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_signal
#include "tests/fuzz/signal_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_constraint
#include "tests/fuzz/constraint_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_dependency
#include "tests/fuzz/dependency_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_time
#include "tests/fuzz/time_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_json
#include "tests/fuzz/json_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
// clang-format on

namespace tutti {
namespace {
TEST(FuzzCorpus, Hostlist) { fuzz::replay("hostlist", fuzz_hostlist); }
TEST(FuzzCorpus, Array) { fuzz::replay("array", fuzz_array); }
TEST(FuzzCorpus, Quantity) { fuzz::replay("quantity", fuzz_quantity); }
TEST(FuzzCorpus, Gres) { fuzz::replay("gres", fuzz_gres); }
TEST(FuzzCorpus, Signal) { fuzz::replay("signal", fuzz_signal); }
TEST(FuzzCorpus, Constraint) { fuzz::replay("constraint", fuzz_constraint); }
TEST(FuzzCorpus, Dependency) { fuzz::replay("dependency", fuzz_dependency); }
TEST(FuzzCorpus, Time) { fuzz::replay("time", fuzz_time); }
TEST(FuzzCorpus, Json) { fuzz::replay("json", fuzz_json); }
}  // namespace
}  // namespace tutti
