#include "tests/fuzz/replay.h"

#define LLVMFuzzerTestOneInput fuzz_sbatch_script
#include "tests/fuzz/sbatch_script_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_slurm_options
#include "tests/fuzz/slurm_options_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_slurm_conf
#include "tests/fuzz/slurm_conf_fuzz.cpp"
#undef LLVMFuzzerTestOneInput

namespace tutti {
TEST(FuzzCorpus, SbatchScript) { fuzz::replay("sbatch_script", fuzz_sbatch_script); }
TEST(FuzzCorpus, SlurmOptions) { fuzz::replay("slurm_options", fuzz_slurm_options); }
TEST(FuzzCorpus, SlurmConf) { fuzz::replay("slurm_conf", fuzz_slurm_conf); }
}  // namespace tutti
