// Lines are the words of a command line, of every command in turn. A refusal has a text and a code
// that is not 0; what is accepted as a job asks for at least one node and one task.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "frontend/canonical.h"
#include "frontend/slurm/command_options.h"
#include "frontend/slurm/lowering.h"

namespace {
template <class T>
void check_refusal(const tutti::slurm::Parsed<T>& parsed) {
  if (!parsed) TUTTI_CHECK(!parsed.error().text.empty() && parsed.error().exit_code != 0);
}
void check_workload(const tutti::Workload& workload) {
  TUTTI_CHECK(!workload.roles.empty());
  for (const tutti::RoleAsk& role : workload.roles) {
    TUTTI_CHECK(role.nodes_min >= 1 && role.nodes_max >= role.nodes_min && role.tasks >= 1);
    TUTTI_CHECK(role.cpus_per_task >= 1);
  }
  TUTTI_CHECK(!tutti::canonical_text(workload).empty());
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::slurm;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words;
  for (std::string_view line : tutti::split(text, '\n')) words.emplace_back(line);
  ClientContext context;
  context.work_dir = "/home/alice";
  context.now = tutti::Instant::from_ms(1'796'068'800'000);
  context.open_file = [](const std::string&) -> tutti::Result<ReadSome> {
    return ReadSome([done = false](std::span<char> into) mutable {
      std::string_view script = done ? "" : "#!/bin/sh\n";
      done = true;
      return tutti::Result<std::size_t>(script.copy(into.data(), into.size()));
    });
  };
  auto batch = lower_sbatch(words, context);
  check_refusal(batch);
  if (batch && batch->show == Show::kNothing) check_workload(batch->submission.workload);
  auto run = lower_srun(words, context);
  check_refusal(run);
  if (run && run->show == Show::kNothing) {
    TUTTI_CHECK(run->allocation.has_value() || run->job != 0);
    TUTTI_CHECK(!run->steps.empty());
  }
  auto allocation = lower_salloc(words, context);
  check_refusal(allocation);
  check_refusal(parse_scancel(words, context));
  check_refusal(parse_squeue(words, context));
  check_refusal(parse_sinfo(words, context));
  check_refusal(parse_sacct(words, context));
  check_refusal(parse_sprio(words, context));
  check_refusal(parse_sdiag(words, context));
  check_refusal(parse_scontrol(words, context));
  return 0;
}
