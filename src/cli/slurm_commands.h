// The Slurm-named commands, each as main() calls it: the words after the program's name in, the
// exit code out.
#pragma once

#include <span>
#include <string>

namespace tutti::cli {

using Words = std::span<const std::string>;

int run_sbatch(Words words);
int run_srun(Words words);
int run_salloc(Words words);
int run_scancel(Words words);
int run_squeue(Words words);
int run_sinfo(Words words);
int run_sacct(Words words);
int run_scontrol(Words words);
int run_sprio(Words words);
int run_sdiag(Words words);
int run_sacctmgr(Words words);
int run_sshare(Words words);

}  // namespace tutti::cli
