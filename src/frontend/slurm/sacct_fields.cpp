// The fields of sacct -o. Source: sacct(1) of 22.05 and the output of that version.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/duration_text.h"
#include "base/size_text.h"
#include "base/text.h"
#include "frontend/slurm/sacct_render.h"
#include "frontend/slurm/squeue_fields.h"

namespace tutti::slurm {
namespace {

using Options = const SacctOptions&;
using Row = const SacctRow&;
using Out = std::string&;

void number(Out out, std::uint64_t n) { fmt::format_to(std::back_inserter(out), "{}", n); }
void empty(Options, Row, Out) {}

std::string memory(Options o, std::uint64_t mib) {
  if (o.units != 0) return format_memory_in(mib, o.units);
  return memory_text(mib, o.convert);
}
std::string kib_text(Options o, std::uint64_t kib) {
  if (kib == 0) return {};
  if (o.units == 0 && (kib < 1024 || kib % 512 != 0 || o.convert == Units::kKeep))
    return fmt::format("{}K", kib);
  if (o.units == 0 && kib % 1024 != 0)
    return fmt::format("{:.2f}M", static_cast<double>(kib) / 1024);
  if (o.units == 0) return memory_text(kib / 1024);
  constexpr std::string_view kUnits = "KMGTP";
  double value = static_cast<double>(kib);
  for (char unit : kUnits) {
    if (unit == o.units) break;
    value /= 1024;
  }
  return fmt::format("{:.2f}{}", value, o.units);
}

const Gang* gang_of(Row r) { return r.job.gang ? &r.job.gang->gang : nullptr; }
bool holds(Row r) { return r.job.gang && !r.job.gang->gang.slots.empty(); }

std::uint64_t step_memory(Row r) {
  std::uint64_t sum = 0;
  const std::vector<Slot>& slots = r.job.gang->gang.slots;
  for (const StepSlot& s : r.step->slots)
    if (s.slot < slots.size()) sum += slots[s.slot].memory_mib;
  return sum;
}
JobAmounts amounts(Row r) {
  if (!r.step) return job_amounts(r.job);
  JobAmounts a;
  a.tasks = step_tasks(*r.step);
  a.nodes = static_cast<std::uint32_t>(r.step->slots.size());
  for (const StepSlot& s : r.step->slots) {
    a.cpus += s.cpus;
    a.gpus += static_cast<std::uint32_t>(s.gpus.size());
  }
  a.memory_mib = step_memory(r);
  return a;
}
// What was asked, whatever is held.
JobAmounts asked(Row r) {
  JobRow pending = r.job;
  pending.gang = nullptr;
  pending.state = JobState::kPending;
  JobAmounts a = job_amounts(pending);
  MemoryAsk ask = memory_ask(r.job, StateView{});
  a.memory_mib = ask.mib * (ask.per == MemoryAsk::Per::kNode  ? a.nodes
                            : ask.per == MemoryAsk::Per::kCpu ? a.cpus
                                                              : a.gpus);
  return a;
}
// History's order of TRES is the alphabet's.
std::string tres(Options o, const JobAmounts& a, std::string_view type, bool billing) {
  std::string out;
  auto to = std::back_inserter(out);
  if (billing) fmt::format_to(to, "billing={},", a.cpus);
  fmt::format_to(to, "cpu={}", a.cpus);
  if (a.gpus != 0 && !type.empty()) fmt::format_to(to, ",gres/gpu:{}={}", type, a.gpus);
  if (a.gpus != 0) fmt::format_to(to, ",gres/gpu={}", a.gpus);
  if (a.memory_mib != 0) fmt::format_to(to, ",mem={}", memory(o, a.memory_mib));
  fmt::format_to(to, ",node={}", a.nodes);
  return out;
}

Instant start_of(Row r) {
  if (r.step) return r.step->started.is_set() ? r.step->started : r.step->created;
  return r.job.is_pending() || !holds(r) ? Instant{} : start_time(r.job);
}
Instant end_of(Row r) {
  if (r.step) return r.step->ended;
  const Gang* gang = gang_of(r);
  return gang && is_done(r.job.state) ? gang->ended : Instant{};
}
Duration elapsed(Options o, Row r) {
  Instant start = start_of(r), end = end_of(r);
  if (!start.is_set()) return {};
  if (!end.is_set()) end = o.times.now();
  return end > start ? Duration::seconds(end.whole_seconds() - start.whole_seconds()) : Duration{};
}
std::uint64_t cpu_ms(Row r) {
  if (r.step) return r.step->usage.cpu_ms;
  std::uint64_t sum = 0;
  if (const Gang* gang = gang_of(r))
    for (const Step& step : gang->steps) sum += step.usage.cpu_ms;
  return sum;
}
void write_cpu_time(Options, Row r, Out out) {
  std::uint64_t ms = cpu_ms(r);
  if (ms == 0)
    out += "00:00:00";
  else if (ms < 3'600'000)
    fmt::format_to(std::back_inserter(out), "{:02}:{:02}.{:03}", ms / 60000, ms / 1000 % 60,
                   ms % 1000);
  else
    out += format_duration(Duration::milliseconds(static_cast<std::int64_t>(ms)));
}
void write_exit(Out out, const ExitStatus& e) {
  fmt::format_to(std::back_inserter(out), "{}:{}", e.code, e.signal);
}
void write_job_id(Options, Row r, Out out) {
  if (r.step)
    out += step_id({r.job, r.step});
  else
    append_job_id(out, r.job);
}
void write_raw_id(Options, Row r, Out out) {
  number(out, r.job.job_id());
  if (!r.step) return;
  std::string_view word = step_name_word(r.step->id);
  out += word.empty() ? fmt::format(".{}", r.step->id) : fmt::format(".{}", word);
}
void write_state(Options, Row r, Out out) {
  JobState state = step_state(r);
  out += state_word(state);
  const Gang* gang = gang_of(r);
  if (!r.step && state == JobState::kCancelled && gang && gang->ended_by_uid)
    fmt::format_to(std::back_inserter(out), " by {}", *gang->ended_by_uid);
}
void write_nodes(Options, Row r, Out out) {
  std::string nodes = r.step ? fold_nodes(step_nodes({r.job, r.step})) : node_list(r.job);
  out += nodes.empty() ? "None assigned" : nodes;
}
void write_time(Options o, Instant at, Out out) { o.times.append(out, at, "Unknown"); }
Duration reserved(Options o, Row r) {
  Instant start = start_of(r);
  if (!start.is_set()) start = is_done(r.job.state) ? end_of(r) : o.times.now();
  return start > r.job.view->eligible ? start - r.job.view->eligible : Duration{};
}

// A field of jobs alone: steps leave it empty.
template <auto kWrite>
void of_job(Options o, Row r, Out out) {
  if (!r.step) kWrite(o, r, out);
}

constexpr std::array kFields{
    SacctField{"Account", 10, [](Options, Row r, Out o) { o += r.job.workload().account; }},
    SacctField{"AdminComment", 19,
               of_job<[](Options, Row r, Out o) { o += r.job.workload().extras->admin_comment; }>},
    SacctField{"AllocCPUS", 10, [](Options, Row r, Out o) { number(o, amounts(r).cpus); }},
    SacctField{"AllocNodes", 10,
               [](Options, Row r, Out o) { number(o, holds(r) ? amounts(r).nodes : 0); }},
    SacctField{"AllocTRES", 10,
               [](Options s, Row r, Out o) {
                 if (holds(r)) o += tres(s, amounts(r), r.gpu_type, r.step == nullptr);
               }},
    SacctField{"AssocID", 7, of_job<[](Options, Row, Out o) { o += '0'; }>},
    SacctField{"AveCPU", 10,
               [](Options s, Row r, Out o) {
                 if (r.step) write_cpu_time(s, r, o);
               }},
    SacctField{"AveCPUFreq", 10, empty},
    SacctField{"AveDiskRead", 14, empty},
    SacctField{"AveDiskWrite", 14, empty},
    SacctField{"AvePages", 10, empty},
    SacctField{"AveRSS", 10,
               [](Options s, Row r, Out o) {
                 if (r.step) o += kib_text(s, r.step->usage.max_rss_kib);
               }},
    SacctField{"AveVMSize", 10, empty},
    SacctField{"BlockID", 16, empty},
    SacctField{"Cluster", 10, [](Options, Row r, Out o) { o += r.cluster; }},
    SacctField{"Comment", 14,
               of_job<[](Options, Row r, Out o) { o += r.job.workload().extras->comment; }>},
    SacctField{"Constraints", 19, of_job<[](Options, Row r, Out o) { o += r.job.ask().features; }>},
    SacctField{"ConsumedEnergy", 14, empty},
    SacctField{"ConsumedEnergyRaw", 17, empty},
    SacctField{"Container", 20, empty},
    SacctField{"CPUTime", 10,
               [](Options s, Row r, Out o) {
                 o += format_duration(
                     Duration::seconds(elapsed(s, r).whole_seconds() * amounts(r).cpus));
               }},
    SacctField{"CPUTimeRAW", 10,
               [](Options s, Row r, Out o) {
                 number(o, static_cast<std::uint64_t>(elapsed(s, r).whole_seconds()) *
                               amounts(r).cpus);
               }},
    SacctField{"DBIndex", 10, [](Options, Row r, Out o) { number(o, r.job.job_id()); }},
    SacctField{"DerivedExitCode", 15, of_job<[](Options, Row r, Out o) {
                 write_exit(o, gang_of(r) ? gang_of(r)->derived_exit : ExitStatus{});
               }>},
    SacctField{"Elapsed", 10, [](Options s, Row r, Out o) { o += format_duration(elapsed(s, r)); }},
    SacctField{"ElapsedRaw", 10,
               [](Options s, Row r, Out o) {
                 number(o, static_cast<std::uint64_t>(elapsed(s, r).whole_seconds()));
               }},
    SacctField{"Eligible", 19,
               [](Options s, Row r, Out o) {
                 write_time(s,
                            r.step            ? start_of(r)
                            : r.job.on_hold() ? Instant{}
                                              : r.job.view->eligible,
                            o);
               }},
    SacctField{"End", 19, [](Options s, Row r, Out o) { write_time(s, end_of(r), o); }},
    SacctField{"ExitCode", 8,
               [](Options, Row r, Out o) {
                 const Gang* gang = gang_of(r);
                 write_exit(o, r.step ? r.step->exit : gang ? gang->exit : ExitStatus{});
               }},
    SacctField{"Flags", 20, empty},
    SacctField{"GID", 6, of_job<[](Options, Row r, Out o) { number(o, r.job.workload().gid); }>},
    SacctField{"Group", 9, of_job<[](Options, Row r, Out o) { o += r.job.workload().group; }>},
    SacctField{"JobID", -12, write_job_id},
    SacctField{"JobIDRaw", -12, write_raw_id},
    SacctField{"JobName", 10,
               [](Options, Row r, Out o) {
                 std::string_view word = r.step ? step_name_word(r.step->id) : std::string_view();
                 o += !word.empty() ? word
                      : r.step      ? std::string_view(r.step->name)
                                    : std::string_view(r.job.workload().name);
               }},
    SacctField{"Layout", 9, empty},
    SacctField{"MaxDiskRead", 12, empty},
    SacctField{"MaxDiskReadNode", 15, empty},
    SacctField{"MaxDiskReadTask", 15, empty},
    SacctField{"MaxDiskWrite", 12, empty},
    SacctField{"MaxDiskWriteNode", 16, empty},
    SacctField{"MaxDiskWriteTask", 16, empty},
    SacctField{"MaxPages", 8, empty},
    SacctField{"MaxPagesNode", 12, empty},
    SacctField{"MaxPagesTask", 14, empty},
    SacctField{"MaxRSS", 10,
               [](Options s, Row r, Out o) {
                 if (r.step) o += kib_text(s, r.step->usage.max_rss_kib);
               }},
    SacctField{"MaxRSSNode", 10, empty},
    SacctField{"MaxRSSTask", 10, empty},
    SacctField{"MaxVMSize", 10, empty},
    SacctField{"MaxVMSizeNode", 14, empty},
    SacctField{"MaxVMSizeTask", 14, empty},
    SacctField{"McsLabel", 10, empty},
    SacctField{"MinCPU", 10, empty},
    SacctField{"MinCPUNode", 10, empty},
    SacctField{"MinCPUTask", 10, empty},
    SacctField{"NCPUS", 10, [](Options, Row r, Out o) { number(o, amounts(r).cpus); }},
    SacctField{"NNodes", 8, [](Options, Row r, Out o) { number(o, amounts(r).nodes); }},
    SacctField{"NodeList", 15, write_nodes},
    SacctField{"NTasks", 8,
               [](Options, Row r, Out o) {
                 if (r.step) number(o, step_tasks(*r.step));
               }},
    SacctField{"Partition", 10, of_job<[](Options, Row r, Out o) {
                 const Gang* gang = gang_of(r);
                 o += gang && !gang->partition.empty() ? gang->partition : r.job.view->partition;
               }>},
    SacctField{"Priority", 10,
               of_job<[](Options, Row r, Out o) { number(o, shown_priority(r.job)); }>},
    SacctField{"QOS", 10, of_job<[](Options, Row r, Out o) { o += r.job.workload().qos; }>},
    SacctField{"QOSRAW", 10, of_job<[](Options, Row, Out o) { o += '0'; }>},
    SacctField{"Reason", 22, of_job<[](Options, Row r, Out o) {
                 o += r.job.is_pending() ? job_reason(r.job) : std::string_view("None");
               }>},
    SacctField{"ReqCPUFreq", 10, of_job<[](Options, Row, Out o) { o += "Unknown"; }>},
    SacctField{"ReqCPUFreqGov", 13, of_job<[](Options, Row, Out o) { o += "Unknown"; }>},
    SacctField{"ReqCPUFreqMax", 13, of_job<[](Options, Row, Out o) { o += "Unknown"; }>},
    SacctField{"ReqCPUFreqMin", 13, of_job<[](Options, Row, Out o) { o += "Unknown"; }>},
    SacctField{"ReqCPUS", 8,
               [](Options, Row r, Out o) { number(o, r.step ? amounts(r).cpus : asked(r).cpus); }},
    SacctField{"ReqMem", 10,
               of_job<[](Options s, Row r, Out o) { o += memory(s, asked(r).memory_mib); }>},
    SacctField{"ReqNodes", 8, of_job<[](Options, Row r, Out o) { number(o, asked(r).nodes); }>},
    SacctField{"ReqTRES", 10, of_job<[](Options s, Row r, Out o) {
                 o += tres(s, asked(r), r.job.ask().gpu_type, true);
               }>},
    SacctField{"Reservation", 20,
               of_job<[](Options, Row r, Out o) { o += r.job.workload().extras->reservation; }>},
    SacctField{"ReservationId", 17, empty},
    SacctField{"Reserved", 10,
               of_job<[](Options s, Row r, Out o) { o += format_duration(reserved(s, r)); }>},
    SacctField{"ResvCPU", 10, of_job<[](Options s, Row r, Out o) {
                 o += format_duration(
                     Duration::seconds(reserved(s, r).whole_seconds() * asked(r).cpus));
               }>},
    SacctField{"ResvCPURAW", 10, of_job<[](Options s, Row r, Out o) {
                 number(o,
                        static_cast<std::uint64_t>(reserved(s, r).whole_seconds()) * asked(r).cpus);
               }>},
    SacctField{"Start", 19, [](Options s, Row r, Out o) { write_time(s, start_of(r), o); }},
    SacctField{"State", 10, write_state},
    SacctField{"Submit", 19,
               [](Options s, Row r, Out o) {
                 write_time(s, r.step ? r.step->created : r.job.workload().submitted, o);
               }},
    SacctField{"SubmitLine", 20, empty},
    SacctField{"Suspended", 10, [](Options, Row, Out o) { o += "00:00:00"; }},
    SacctField{"SystemComment", 19, empty},
    SacctField{"SystemCPU", 10, [](Options, Row, Out o) { o += "00:00:00"; }},
    SacctField{"Timelimit", 10,
               of_job<[](Options, Row r, Out o) { o += format_duration(r.job.view->time_limit); }>},
    SacctField{"TimelimitRaw", 12, of_job<[](Options, Row r, Out o) {
                 Duration limit = r.job.view->time_limit;
                 if (limit.is_infinite())
                   o += "UNLIMITED";
                 else
                   number(o, static_cast<std::uint64_t>(limit.whole_seconds() / 60));
               }>},
    SacctField{"TotalCPU", 10, write_cpu_time},
    SacctField{"TRESUsageInAve", 14, empty},
    SacctField{"TRESUsageInMax", 14, empty},
    SacctField{"TRESUsageInMaxNode", 18, empty},
    SacctField{"TRESUsageInMaxTask", 18, empty},
    SacctField{"TRESUsageInMin", 14, empty},
    SacctField{"TRESUsageInMinNode", 18, empty},
    SacctField{"TRESUsageInMinTask", 18, empty},
    SacctField{"TRESUsageInTot", 14, empty},
    SacctField{"TRESUsageOutAve", 15, empty},
    SacctField{"TRESUsageOutMax", 15, empty},
    SacctField{"TRESUsageOutMaxNode", 19, empty},
    SacctField{"TRESUsageOutMaxTask", 19, empty},
    SacctField{"TRESUsageOutMin", 15, empty},
    SacctField{"TRESUsageOutMinNode", 19, empty},
    SacctField{"TRESUsageOutMinTask", 19, empty},
    SacctField{"TRESUsageOutTot", 15, empty},
    SacctField{"UID", 6, of_job<[](Options, Row r, Out o) { number(o, r.job.workload().uid); }>},
    SacctField{"User", 9, of_job<[](Options, Row r, Out o) { o += r.job.workload().user; }>},
    SacctField{"UserCPU", 10, write_cpu_time},
    SacctField{"WCKey", 10,
               of_job<[](Options, Row r, Out o) { o += r.job.workload().extras->wckey; }>},
    SacctField{"WCKeyID", 8, of_job<[](Options, Row, Out o) { o += '0'; }>},
    SacctField{"WorkDir", 20,
               of_job<[](Options, Row r, Out o) { o += r.job.workload().launch.work_dir; }>},
};

// Names of older Slurms that clients still ask for; -e does not list them.
constexpr std::array kOldFields{
    SacctField{"AllocGRES", 12,
               [](Options, Row r, Out o) {
                 if (holds(r) && amounts(r).gpus != 0)
                   fmt::format_to(std::back_inserter(o), "gpu:{}", amounts(r).gpus);
               }},
    SacctField{"ReqGRES", 12, of_job<[](Options, Row r, Out o) {
                 if (asked(r).gpus != 0)
                   fmt::format_to(std::back_inserter(o), "gpu:{}", asked(r).gpus);
               }>},
    SacctField{"Planned", 10,
               of_job<[](Options s, Row r, Out o) { o += format_duration(reserved(s, r)); }>},
    SacctField{
        "Restarts", 8,
        of_job<[](Options, Row r, Out o) { number(o, gang_of(r) ? gang_of(r)->restarts : 0); }>},
};

}  // namespace

std::span<const SacctField> sacct_fields() { return kFields; }

const SacctField* find_sacct_field(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const SacctField& f : kFields)
    if (equals_ci(f.name, name)) return &f;
  for (const SacctField& f : kOldFields)
    if (equals_ci(f.name, name)) return &f;
  for (const SacctField& f : kFields)
    if (starts_with_ci(f.name, name)) return &f;
  return nullptr;
}

}  // namespace tutti::slurm
