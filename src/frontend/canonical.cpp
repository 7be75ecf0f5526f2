#include "frontend/canonical.h"

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/enum_names.h"
#include "base/hostlist.h"
#include "base/signal_text.h"
#include "base/text.h"

namespace tutti {
namespace {

class Lines {
 public:
  explicit Lines(std::string indent) : indent_(std::move(indent)) {}
  void line(std::string_view name, std::string_view value) {
    text_ += fmt::format("{}{}: {}\n", indent_, name, value);
  }
  void text(std::string_view name, std::string_view value) {
    if (!value.empty()) line(name, value);
  }
  void number(std::string_view name, std::uint64_t value, std::uint64_t quiet = 0) {
    if (value != quiet) line(name, fmt::format("{}", value));
  }
  void flag(std::string_view name, bool value) {
    if (value) text_ += fmt::format("{}{}\n", indent_, name);
  }
  void list(std::string_view name, const std::vector<std::string>& values) {
    if (!values.empty()) line(name, join(values, ", "));
  }
  void duration(std::string_view name, const std::optional<Duration>& value) {
    if (value) line(name, format_duration(*value));
  }
  void append(std::string text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  std::string indent_, text_;
};

std::string range(std::uint32_t low, std::uint32_t high) {
  if (high == low) return fmt::format("{}", low);
  return high == kNoLimit ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high);
}

std::string words(const std::vector<std::string>& argv) {
  std::vector<std::string> quoted;
  for (const std::string& one : argv)
    quoted.push_back(one.empty() || one.find_first_of(" \t\n'\"") != one.npos ? quote(one) : one);
  return join(quoted, " ");
}

std::string role_text(const RoleAsk& role, const std::string& indent) {
  Lines out(indent);
  out.line("nodes", range(role.nodes_min, role.nodes_max));
  out.line("tasks", fmt::format("{}", role.tasks));
  out.number("tasks per node", role.tasks_per_node);
  out.number("cpus per task", role.cpus_per_task, 1);
  out.number("cpus per gpu", role.cpus_per_gpu);
  out.number("cpus per node", role.cpus_per_node);
  out.text("gpu type", role.gpu_type);
  out.number("gpus per node", role.gpus_per_node);
  out.number("gpus per task", role.gpus_per_task);
  out.number("gpus", role.gpus_total);
  out.text("as parts", role.gpu_profile);
  out.number("memory of each gpu (MiB)", role.gpu_memory_mib);
  out.number("share of each gpu (per mille)", role.gpu_share_permille);
  out.number("memory per node (MiB)", role.memory_mib_per_node);
  out.number("memory per cpu (MiB)", role.memory_mib_per_cpu);
  out.number("memory per gpu (MiB)", role.memory_mib_per_gpu);
  out.flag("all memory of each node", role.memory_whole_node);
  out.flag("exclusive", role.exclusive);
  out.flag("contiguous", role.contiguous);
  out.text("features", role.features);
  out.text("on", fold_hostlist(role.nodes_in));
  out.text("not on", fold_hostlist(role.nodes_out));
  return out.take();
}

std::string dependency_text(const Dependency& one) {
  std::string text(enum_name(one.kind));
  if (one.kind == DependencyKind::kSingleton) return text;
  text += fmt::format(":{}", one.job);
  if (one.array_index) text += fmt::format("_{}", *one.array_index);
  if (one.delay_minutes > 0) text += fmt::format("+{}", one.delay_minutes);
  return text;
}

void launch_lines(Lines& out, const LaunchAsk& launch) {
  out.text("command", launch.command);
  out.text("arguments", words(launch.argv));
  out.text("in directory", launch.work_dir);
  out.text("stdin", launch.stdin_path);
  out.text("stdout", launch.stdout_path);
  out.text("stderr", launch.stderr_path);
  out.flag("append output", launch.append_output);
  if (launch.umask != 0022) out.line("umask", fmt::format("{:04o}", launch.umask));
  for (const Rlimit& limit : launch.limits)
    out.line("limit " + limit.name,
             limit.value == ~std::uint64_t{0} ? "unlimited" : fmt::format("{}", limit.value));
}

void topology_lines(Lines& out, const TopologyAsk& topology) {
  out.text("in one", topology.required);
  out.text("preferably in one", topology.preferred);
  out.number("segments of", topology.segment);
  out.number("switches at most", topology.switches);
  out.duration("which it waits for", topology.switches_wait);
}

void extras_lines(Lines& out, const WorkloadExtras& extras) {
  std::vector<std::string> dependencies;
  for (const Dependency& one : extras.dependencies) dependencies.push_back(dependency_text(one));
  if (!dependencies.empty())
    out.line("after", join(dependencies, extras.any_dependency ? " or " : " and "));
  if (const WarningSignal& warning = extras.warning_signal; warning.signal != 0)
    out.line("warning signal", fmt::format("{}{} {} s before the end",
                                           warning.to_batch_shell ? "to the batch shell " : "",
                                           signal_name(warning.signal), warning.seconds_before));
  out.text("comment", extras.comment);
  out.text("reservation", extras.reservation);
  out.text("licenses", extras.licenses);
  out.text("mail user", extras.mail_user);
  out.text("mail type", extras.mail_type);
  out.text("wckey", extras.wckey);
  out.list("clusters", extras.clusters);
  out.text("queue", extras.terms.queue);
  if (!extras.terms.group.empty())
    out.line("group", fmt::format("{} of {}", extras.terms.group, extras.terms.group_size));
  out.list("gpu types", extras.terms.gpu_types);
  if (extras.terms.reclaim != ReclaimMode::kDefault)
    out.line("reclaim", enum_name(extras.terms.reclaim));
  out.duration("notice", extras.terms.notice);
  if (extras.terms.min_runtime != Duration())
    out.line("runs at least", format_duration(extras.terms.min_runtime));
  out.flag("elastic", extras.terms.elastic);
  out.duration("ready within", extras.terms.ready_deadline);
  topology_lines(out, extras.terms.topology);
  if (extras.fixed_priority) out.line("priority", fmt::format("{}", *extras.fixed_priority));
  out.list("not honoured", extras.not_honoured);
}

void stream_line(Lines& out, std::string_view name, const StreamTarget& stream) {
  if (stream.kind == StreamKind::kNull)
    out.line(name, "none");
  else if (stream.kind == StreamKind::kFile)
    out.line(name, "file " + stream.path);
  else if (stream.only_rank)
    out.line(name, fmt::format("rank {}", *stream.only_rank));
}

}  // namespace

std::string canonical_text(const RoleAsk& role) { return role_text(role, ""); }

std::string canonical_text(const Workload& workload) {
  Lines out("");
  out.line(enum_name(workload.kind), workload.name);
  out.text("user", workload.user);
  out.text("account", workload.account);
  out.text("qos", workload.qos);
  out.list("partitions", workload.partitions);
  for (const RoleAsk& role : workload.roles) {
    if (workload.roles.size() > 1) out.line("role", role.name);
    out.append(role_text(role, workload.roles.size() > 1 ? "  " : ""));
  }
  out.duration("time limit", workload.time_limit);
  out.duration("time at least", workload.time_min);
  if (workload.begin.is_set())
    out.line("begin (s)", fmt::format("{}", workload.begin.whole_seconds()));
  if (workload.nice != 0) out.line("nice", fmt::format("{}", workload.nice));
  if (workload.hold != Hold::kNone) out.line("hold", enum_name(workload.hold));
  out.flag("no requeue", !workload.requeue);
  out.flag("immediate", workload.immediate);
  out.flag("kill on bad exit", workload.kill_on_bad_exit);
  out.text("array", workload.array);
  out.number("array at once", workload.array_throttle);
  launch_lines(out, workload.launch);
  extras_lines(out, workload.extras);
  return out.take();
}

std::string canonical_text(const StepRequest& step) {
  Lines out("");
  out.line("step", step.order.name);
  if (step.gang) out.line("of job", fmt::format("{}", step.gang.value()));
  if (step.nodes_min > 0) out.line("nodes", range(step.nodes_min, step.nodes_max));
  out.number("tasks", step.tasks);
  out.number("tasks per node", step.tasks_per_node);
  out.number("cpus per task", step.cpus_per_task);
  if (step.gpus_per_node) out.line("gpus per node", fmt::format("{}", *step.gpus_per_node));
  out.number("gpus per task", step.gpus_per_task);
  out.number("gpus", step.gpus_total);
  out.text("gpu type", step.gpu_type);
  out.text("on", fold_hostlist(step.nodes_in));
  out.text("not on", fold_hostlist(step.nodes_out));
  if (step.relative != kNoLimit) out.line("from node", fmt::format("{}", step.relative));
  out.flag("overlap", step.overlap);
  out.flag("exact", step.exact);
  out.text("distribution", step.distribution);
  out.text("run", words(step.order.argv));
  out.text("in directory", step.order.work_dir);
  stream_line(out, "stdin", step.order.in);
  stream_line(out, "stdout", step.order.out);
  if (step.order.err.kind != StreamKind::kNull) stream_line(out, "stderr", step.order.err);
  out.flag("append output", step.order.append);
  out.flag("unbuffered", step.order.unbuffered);
  out.flag("pty", step.order.pty);
  if (step.order.mpi != "none") out.text("mpi", step.order.mpi);
  return out.take();
}

}  // namespace tutti
