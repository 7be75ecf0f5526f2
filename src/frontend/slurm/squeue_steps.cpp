// Steps of running jobs: squeue -s.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/duration_text.h"
#include "frontend/slurm/squeue_fields.h"

namespace tutti::slurm {
namespace {

using Context = const JobContext&;
using Row = const StepRow&;
using Out = std::string&;

void number(Out out, std::uint64_t n) { fmt::format_to(std::back_inserter(out), "{}", n); }

std::uint32_t step_gpus(const Step& step) {
  std::uint32_t gpus = 0;
  for (const StepSlot& slot : step.slots) gpus += static_cast<std::uint32_t>(slot.gpus.size());
  return gpus;
}
void write_step_name(Context, Row r, Out o) {
  std::string_view word = step_name_word(r.step->id);
  o += word.empty() ? std::string_view(r.step->name) : word;
}
void write_gpus(Context, Row r, Out o) {
  std::uint32_t gpus = r.step->id < 0 || r.step->slots.empty() ? 0 : step_gpus(*r.step);
  if (gpus == 0) {
    o += "(null)";
    return;
  }
  std::string type = r.job.ask().gpu_type;
  fmt::format_to(std::back_inserter(o), "gres:gpu{}{}:{}", type.empty() ? "" : ":", type,
                 gpus / r.step->slots.size());
}

constexpr std::array kFields{
    StepField{'A', "numtasks", "TASKS",
              [](Context, Row r, Out o) { number(o, step_tasks(*r.step)); }},
    StepField{'b', "tres-per-node", "TRES_PER_NODE", write_gpus},
    StepField{'i', "stepid", "STEPID", [](Context, Row r, Out o) { o += step_id(r); }},
    StepField{'j', "stepname", "NAME", write_step_name},
    StepField{'l', "timelimit", "TIME_LIMIT", [](Context, Row, Out o) { o += "UNLIMITED"; }},
    StepField{'M', "timeused", "TIME",
              [](Context c, Row r, Out o) {
                Instant from = r.step->started.is_set() ? r.step->started : r.step->created;
                o += format_duration_short(from.is_set() ? c.times->now() - from : Duration{});
              }},
    StepField{'N', "nodes", "NODELIST",
              [](Context, Row r, Out o) { o += fold_nodes(step_nodes(r)); }},
    StepField{'P', "partition", "PARTITION",
              [](Context, Row r, Out o) { o += r.job.gang->gang.partition; }},
    StepField{'S', "starttime", "START_TIME",
              [](Context c, Row r, Out o) { c.times->append(o, r.step->started); }},
    StepField{'u', "username", "USER", [](Context, Row r, Out o) { o += r.job.workload().user; }},
    StepField{'U', "userid", "UID", [](Context, Row r, Out o) { number(o, r.job.workload().uid); }},
    StepField{0, "arrayjobid", "ARRAY_JOB_ID",
              [](Context, Row r, Out o) {
                number(o, r.job.workload().is_array() ? r.job.workload().id.value() : 0);
              }},
    StepField{0, "arraytaskid", "ARRAY_TASK_ID",
              [](Context, Row r, Out o) { o += array_task_id(r.job); }},
    StepField{0, "cluster", "CLUSTER", [](Context c, Row, Out o) { o += c.view->cluster; }},
    StepField{0, "container", "CONTAINER", [](Context, Row, Out o) { o += "(null)"; }},
    StepField{0, "cpufreq", "CPU_FREQ", [](Context, Row, Out o) { o += "0-0:0"; }},
    StepField{0, "jobid", "JOB_ID", [](Context, Row r, Out o) { number(o, r.job.job_id()); }},
    StepField{0, "network", "NETWORK", [](Context, Row, Out o) { o += "(null)"; }},
    StepField{0, "numcpus", "NUM_CPUS",
              [](Context, Row r, Out o) {
                std::uint64_t cpus = 0;
                if (r.step->id >= 0)
                  for (const StepSlot& slot : r.step->slots) cpus += slot.cpus;
                number(o, cpus);
              }},
    StepField{0, "resvport", "RESV_PORTS", [](Context, Row, Out o) { o += "(null)"; }},
    StepField{0, "stepstate", "STATE",
              [](Context, Row r, Out o) {
                o += r.step->state == StepState::kDone ? "COMPLETED" : "RUNNING";
              }},
    StepField{0, "submittime", "SUBMIT_TIME",
              [](Context c, Row r, Out o) { c.times->append(o, r.step->created); }},
};

struct Alias {
  std::string_view other, name;
};
constexpr std::array kAliases{Alias{"name", "stepname"}, Alias{"nodelist", "nodes"},
                              Alias{"tres-per-step", "tres-per-node"},
                              Alias{"gres", "tres-per-node"}, Alias{"jobarrayid", "stepid"}};

}  // namespace

std::span<const StepField> step_fields() { return kFields; }

std::uint32_t step_field_by_letter(char letter) {
  for (std::size_t i = 0; i < kFields.size(); ++i)
    if (letter != 0 && kFields[i].letter == letter) return static_cast<std::uint32_t>(i);
  return kTextOnly;
}

std::uint32_t step_field_by_name(std::string_view lower_name) {
  for (const Alias& alias : kAliases)
    if (alias.other == lower_name) lower_name = alias.name;
  for (std::size_t i = 0; i < kFields.size(); ++i)
    if (!lower_name.empty() && kFields[i].name == lower_name) return static_cast<std::uint32_t>(i);
  return kTextOnly;
}

std::string_view step_name_word(StepId id) {
  switch (id) {
    case kBatchStep:
      return "batch";
    case kExternStep:
      return "extern";
    case kInteractiveStep:
      return "interactive";
    default:
      return {};
  }
}

std::string step_id(const StepRow& row) {
  std::string out;
  append_job_id(out, row.job);
  out += '.';
  std::string_view word = step_name_word(row.step->id);
  if (word.empty())
    number(out, static_cast<std::uint64_t>(row.step->id));
  else
    out += word;
  return out;
}

std::vector<std::string> step_nodes(const StepRow& row) {
  std::vector<std::string> names;
  for (const StepSlot& slot : row.step->slots)
    if (slot.slot < row.job.gang->nodes.size()) names.push_back(row.job.gang->nodes[slot.slot]);
  return names;
}

std::uint32_t step_tasks(const Step& step) {
  std::size_t tasks = 0;
  for (const StepSlot& slot : step.slots) tasks += slot.ranks.size();
  return step.id < 0 ? 1 : static_cast<std::uint32_t>(tasks);
}

std::vector<StepRow> step_rows(const StateView& view) {
  std::vector<StepRow> rows;
  for (const JobRow& job : job_rows(view, ArrayRows::kFolded)) {
    if (!job.gang || job.role != 0 || is_done(job.state)) continue;
    std::size_t first = rows.size();
    for (const Step& step : job.gang->gang.steps)
      if (step.state != StepState::kDone) rows.push_back({job, &step});
    auto rank = [](const StepRow& r) {
      return r.step->id >= 0 ? r.step->id : 0x7FFFFFF0 - r.step->id;
    };
    std::sort(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
              [&](const StepRow& a, const StepRow& b) { return rank(a) < rank(b); });
  }
  return rows;
}

}  // namespace tutti::slurm
