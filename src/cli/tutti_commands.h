// Tutti's own commands: up, down, run, why, top, logs, lint, doctor, compare, controller, agent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster_setup.h"
#include "cli/slurm_commands.h"

namespace tutti::cli {

// Parses the words (CLI11) and calls one of the below. Returns the exit code.
int run_tutti(Words words);

int run_up(const UpOptions& options);

struct DownOptions {
  std::string state_dir;
  bool no_requeue = false, purge = false, yes = false;
};
int run_down(const DownOptions& options);

struct RunOptions {
  std::string gpus;  // "[TYPE:]N"
  std::uint32_t nodes = 1, tasks = 0, cpus = 0;
  std::string memory, time, partition, name;
  bool detach = false;
  std::vector<std::string> command;
};
int run_run(const RunOptions& options);

struct WhyOptions {
  std::string job;
  bool json = false;
};
int run_why(const WhyOptions& options);

struct WhatIfOptions {
  std::vector<std::string> scripts, quotas;
  std::string drain, add_nodes;
  bool json = false;
};
int run_whatif(const WhatIfOptions& options);

struct TopOptions {
  bool json = false, once = false;
};
int run_top(const TopOptions& options);

struct LogsOptions {
  std::string job;
  bool follow = false, error = false;
};
int run_logs(const LogsOptions& options);

struct LintOptions {
  std::vector<std::string> files;
  bool json = false;
};
int run_lint(const LintOptions& options);

struct DoctorOptions {
  std::string state_dir;
  bool json = false;
};
int run_doctor(const DoctorOptions& options);

struct CompareOptions {
  std::string trace, cluster, columns, html;
  std::string profiles = "tutti,easy,fcfs";
  std::int64_t start_delay_ms = 0, release_delay_ms = 0;
  double price = 0;
  bool json = false, skip_bad = false;
};
int run_compare(const CompareOptions& options);

int run_agent_command(const std::string& state_dir, const std::string& node);

}  // namespace tutti::cli
