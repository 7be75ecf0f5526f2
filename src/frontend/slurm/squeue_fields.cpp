#include "frontend/slurm/squeue_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "base/duration_text.h"

namespace tutti::slurm {
namespace {

using Context = const JobContext&;
using Row = const JobRow&;
using Out = std::string&;

void number(Out out, std::uint64_t n) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}
void text_or(Out out, std::string_view text, std::string_view empty) {
  out += text.empty() ? empty : text;
}
constexpr std::string_view kNull = "(null)";
constexpr std::string_view kNone = "N/A";

// Fields with one fixed answer: what Tutti has no notion of, as Slurm shows it when unused.
template <std::size_t N>
struct Literal {
  char text[N];
  // Implicit, so that fixed<"0"> reads as it should.
  constexpr Literal(const char (&given)[N]) { std::copy_n(given, N, text); }
};
template <Literal kText>
void fixed(Context, Row, Out out) {
  out += kText.text;
}

void write_limit(Out out, Duration limit) {
  out += limit == Duration{} ? "NOT_SET" : format_duration_short(limit);
}
void write_over_subscribe(Context, Row row, Out out) { out += row.ask().exclusive ? "NO" : "OK"; }
void write_nodes_reason(Context, Row row, Out out) {
  bool failure = row.state == JobState::kFailed || row.state == JobState::kTimeout ||
                 row.state == JobState::kOutOfMemory || row.state == JobState::kDeadline;
  if (!row.is_pending() && !failure) {
    out += node_list(row);
    return;
  }
  out += '(';
  out += job_reason(row);
  out += ')';
}
void write_sched_nodes(Context, Row row, Out out) {
  const Wait* wait = row.wait();
  if (wait && !wait->planned_nodes.empty() && !row.on_hold())
    out += fold_nodes(wait->planned_nodes);
  else
    out += kNull;
}
void write_exit(Out out, const ExitStatus& exit) {
  number(out,
         static_cast<std::uint64_t>(exit.code) * 256 + static_cast<std::uint64_t>(exit.signal));
}
void write_pending_time(Context c, Row row, Out out) {
  Instant start = row.is_pending() || !row.gang ? c.times->now() : start_time(row);
  std::int64_t seconds = (start - row.workload().submitted).whole_seconds();
  number(out, static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0)));
}
void write_eligible(Context c, Row row, Out out) {
  c.times->append(out, row.on_hold() ? Instant{} : row.view->eligible);
}
Instant eligible_once(Row row) {
  return row.view->eligible > row.workload().submitted ? row.view->eligible
                                                       : row.workload().submitted;
}

constexpr std::array kFields{
    JobField{'a', "account", "ACCOUNT",
             [](Context, Row r, Out o) { text_or(o, r.workload().account, kNull); }},
    JobField{'A', "jobid", "JOBID", [](Context, Row r, Out o) { number(o, r.job_id()); }},
    JobField{'b', "tres-per-node", "TRES_PER_NODE",
             [](Context, Row r, Out o) { text_or(o, tres_ask(r.ask(), TresScope::kNode), kNone); }},
    JobField{'B', "batchhost", "EXEC_HOST",
             [](Context, Row r, Out o) { text_or(o, batch_host(r), "n/a"); }},
    JobField{'c', "mincpus", "MIN_CPUS",
             [](Context, Row r, Out o) { number(o, min_cpus_per_node(r.ask())); }},
    JobField{'C', "numcpus", "CPUS", [](Context, Row r, Out o) { number(o, job_amounts(r).cpus); }},
    JobField{'d', "mintmpdisk", "MIN_TMP_DISK", fixed<"0">},
    JobField{'D', "numnodes", "NODES",
             [](Context, Row r, Out o) { number(o, job_amounts(r).nodes); }},
    JobField{'e', "endtime", "END_TIME",
             [](Context c, Row r, Out o) { c.times->append(o, end_time(r)); }},
    JobField{'E', "dependency", "DEPENDENCY",
             [](Context c, Row r, Out o) { text_or(o, dependency_text(r, c.arrays), kNull); }},
    JobField{'f', "feature", "FEATURES",
             [](Context, Row r, Out o) { text_or(o, r.ask().features, kNull); }},
    JobField{'F', "arrayjobid", "ARRAY_JOB_ID",
             [](Context, Row r, Out o) {
               number(o, r.workload().is_array() ? r.workload().id.value() : r.job_id());
             }},
    JobField{'g', "groupname", "GROUP",
             [](Context, Row r, Out o) {
               if (r.workload().group.empty())
                 number(o, r.workload().gid);
               else
                 o += r.workload().group;
             }},
    JobField{'G', "groupid", "GROUP", [](Context, Row r, Out o) { number(o, r.workload().gid); }},
    JobField{'h', "oversubscribe", "OVER_SUBSCRIBE", write_over_subscribe},
    JobField{'H', "sockets", "SOCKETS_PER_NODE", fixed<"*">},
    JobField{'i', "jobarrayid", "JOBID", [](Context, Row r, Out o) { append_job_id(o, r); }},
    JobField{'I', "cores", "CORES_PER_SOCKET", fixed<"*">},
    JobField{'j', "name", "NAME", [](Context, Row r, Out o) { o += r.workload().name; }},
    JobField{'J', "threads", "THREADS_PER_CORE", fixed<"*">},
    JobField{'k', "comment", "COMMENT",
             [](Context, Row r, Out o) { text_or(o, r.workload().extras->comment, kNull); }},
    JobField{'K', "arraytaskid", "ARRAY_TASK_ID",
             [](Context, Row r, Out o) { o += array_task_id(r); }},
    JobField{'l', "timelimit", "TIME_LIMIT",
             [](Context, Row r, Out o) { write_limit(o, r.view->time_limit); }},
    JobField{'L', "timeleft", "TIME_LEFT",
             [](Context c, Row r, Out o) {
               if (r.view->time_limit == Duration{})
                 o += "NOT_SET";
               else
                 o += format_duration_short(time_left(r, c.times->now()));
             }},
    JobField{'m', "minmemory", "MIN_MEMORY",
             [](Context c, Row r, Out o) { o += memory_text(memory_ask(r, *c.view).mib, c.units); }},
    JobField{'M', "timeused", "TIME",
             [](Context c, Row r, Out o) {
               o += format_duration_short(time_used(r, c.times->now()));
             }},
    JobField{'n', "reqnodes", "REQ_NODES",
             [](Context, Row r, Out o) { o += fold_nodes(r.ask().nodes_in); }},
    JobField{'N', "nodelist", "NODELIST", [](Context, Row r, Out o) { o += node_list(r); }},
    JobField{'o', "command", "COMMAND",
             [](Context, Row r, Out o) { text_or(o, r.workload().launch.command, kNull); }},
    JobField{'O', "contiguous", "CONTIGUOUS",
             [](Context, Row r, Out o) { o += r.ask().contiguous ? '1' : '0'; }},
    JobField{'p', "priority", "PRIORITY",
             [](Context, Row r, Out o) {
               fmt::format_to(std::back_inserter(o), "{:.14f}",
                              static_cast<double>(shown_priority(r)) / 4294967295.0);
             }},
    JobField{'P', "partition", "PARTITION",
             [](Context, Row r, Out o) {
               // A job that waits for several partitions names them all.
               const std::vector<std::string>& asked = r.workload().partitions;
               if (r.is_pending() && asked.size() > 1)
                 o += fmt::format("{}", fmt::join(asked, ","));
               else if (r.gang && !r.is_pending() && !r.gang->gang.partition.empty())
                 o += r.gang->gang.partition;
               else
                 o += r.view->partition;
             }},
    JobField{'q', "qos", "QOS", [](Context, Row r, Out o) { text_or(o, r.workload().qos, kNull); }},
    JobField{'Q', "prioritylong", "PRIORITY",
             [](Context, Row r, Out o) { number(o, shown_priority(r)); }},
    JobField{'r', "reason", "REASON", [](Context, Row r, Out o) { o += job_reason(r); }},
    JobField{'R', "reasonlist", "NODELIST(REASON)", write_nodes_reason},
    JobField{'s', "selectjobinfo", "", fixed<"">},
    JobField{'S', "starttime", "START_TIME",
             [](Context c, Row r, Out o) { c.times->append(o, start_time(r)); }},
    JobField{'t', "statecompact", "ST",
             [](Context, Row r, Out o) { o += state_compact(r.state); }},
    JobField{'T', "state", "STATE", [](Context, Row r, Out o) { o += state_word(r.state); }},
    JobField{'u', "username", "USER",
             [](Context, Row r, Out o) {
               if (r.workload().user.empty())
                 number(o, r.workload().uid);
               else
                 o += r.workload().user;
             }},
    JobField{'U', "userid", "UID", [](Context, Row r, Out o) { number(o, r.workload().uid); }},
    JobField{'v', "reservation", "RESERVATION",
             [](Context, Row r, Out o) { text_or(o, r.workload().extras->reservation, kNull); }},
    JobField{'V', "submittime", "SUBMIT_TIME",
             [](Context c, Row r, Out o) { c.times->append(o, r.workload().submitted); }},
    JobField{'w', "wckey", "WCKEY",
             [](Context, Row r, Out o) { text_or(o, r.workload().extras->wckey, kNull); }},
    JobField{'W', "licenses", "LICENSES",
             [](Context, Row r, Out o) { text_or(o, r.workload().extras->licenses, kNull); }},
    JobField{'x', "excnodes", "EXC_NODES",
             [](Context, Row r, Out o) { o += fold_nodes(r.ask().nodes_out); }},
    JobField{'X', "corespec", "CORE_SPEC", fixed<"N/A">},
    JobField{'y', "nice", "NICE",
             [](Context, Row r, Out o) {
               fmt::format_to(std::back_inserter(o), "{}", r.workload().nice);
             }},
    JobField{'Y', "schednodes", "SCHEDNODES", write_sched_nodes},
    JobField{'z', "sct", "S:C:T", fixed<"*:*:*">},
    JobField{'Z', "workdir", "WORK_DIR",
             [](Context, Row r, Out o) { text_or(o, r.workload().launch.work_dir, kNull); }},
    JobField{0, "accruetime", "ACCRUE_TIME",
             [](Context c, Row r, Out o) {
               c.times->append(o, r.on_hold() ? Instant{} : eligible_once(r));
             }},
    JobField{0, "admin_comment", "ADMIN_COMMENT",
             [](Context, Row r, Out o) { text_or(o, r.workload().extras->admin_comment, kNull); }},
    JobField{0, "allocnodes", "ALLOC_NODES",
             [](Context, Row r, Out o) { text_or(o, r.workload().extras->submit_host, kNull); }},
    JobField{0, "allocsid", "ALLOC_SID",
             [](Context, Row r, Out o) { number(o, r.workload().extras->submit_pid); }},
    JobField{0, "associd", "ASSOC_ID", fixed<"0">},
    JobField{0, "batchflag", "BATCH_FLAG",
             [](Context, Row r, Out o) { o += r.workload().is_batch() ? '1' : '0'; }},
    JobField{0, "boardspernode", "BOARDS_PER_NODE", fixed<"0">},
    JobField{0, "burstbuffer", "BURST_BUFFER", fixed<"(null)">},
    JobField{0, "burstbufferstate", "BURST_BUFFER_STATE", fixed<"(null)">},
    JobField{0, "cluster", "CLUSTER",
             [](Context c, Row, Out o) { text_or(o, c.view->cluster, kNone); }},
    JobField{0, "clusterfeature", "CLUSTER_FEATURES", fixed<"(null)">},
    JobField{0, "container", "CONTAINER", fixed<"(null)">},
    JobField{0, "cpus-per-task", "CPUS_PER_TASK",
             [](Context, Row r, Out o) { number(o, r.ask().cpus_per_task); }},
    JobField{0, "cpus-per-tres", "CPUS_PER_TRES",
             [](Context, Row r, Out o) {
               if (r.ask().cpus_per_gpu == 0)
                 o += kNone;
               else
                 fmt::format_to(std::back_inserter(o), "gres:gpu:{}", r.ask().cpus_per_gpu);
             }},
    JobField{0, "deadline", "DEADLINE", fixed<"N/A">},
    JobField{0, "delayboot", "DELAY_BOOT", fixed<"0:00">},
    JobField{0, "derivedec", "DERIVED_EC",
             [](Context, Row r, Out o) {
               write_exit(o, r.gang ? r.gang->gang.derived_exit : ExitStatus{});
             }},
    JobField{0, "eligibletime", "ELIGIBLE_TIME", write_eligible},
    JobField{0, "exit_code", "EXIT_CODE",
             [](Context, Row r, Out o) {
               write_exit(o, r.gang ? r.gang->gang.exit : ExitStatus{});
             }},
    JobField{0, "hetjobid", "HET_JOB_ID",
             [](Context, Row r, Out o) {
               if (r.is_het())
                 number(o, r.workload().id.value());
               else
                 o += kNone;
             }},
    JobField{0, "hetjobidset", "HET_JOB_ID_SET",
             [](Context, Row r, Out o) {
               if (r.is_het())
                 number(o, r.workload().id.value());
               else
                 o += kNone;
             }},
    JobField{0, "hetjoboffset", "HET_JOB_OFFSET",
             [](Context, Row r, Out o) {
               if (r.is_het())
                 number(o, r.role);
               else
                 o += kNone;
             }},
    JobField{0, "lastschedeval", "LAST_SCHED_EVAL",
             [](Context c, Row r, Out o) {
               c.times->append(o, r.is_pending() ? c.view->now : start_time(r));
             }},
    JobField{0, "maxcpus", "MAX_CPUS",
             [](Context, Row r, Out o) { number(o, job_amounts(r).cpus); }},
    JobField{0, "maxnodes", "MAX_NODES",
             [](Context, Row r, Out o) {
               bool open = r.ask().nodes_max == kNoLimit || !r.is_pending();
               number(o, open ? job_amounts(r).nodes : r.ask().nodes_max);
             }},
    JobField{0, "mcslabel", "MCSLABEL", fixed<"(null)">},
    JobField{0, "mem-per-tres", "MEM_PER_TRES",
             [](Context, Row r, Out o) {
               if (r.ask().memory_mib_per_gpu == 0)
                 o += kNone;
               else
                 fmt::format_to(std::back_inserter(o), "gres:gpu:{}", r.ask().memory_mib_per_gpu);
             }},
    JobField{0, "mintime", "TIME_MIN",
             [](Context, Row r, Out o) {
               o += format_duration_short(r.workload().time_min.value_or(Duration{}));
             }},
    JobField{0, "network", "NETWORK", fixed<"(null)">},
    JobField{0, "ntperboard", "NTASKS_PER_BOARD", fixed<"0">},
    JobField{0, "ntpercore", "NTASKS_PER_CORE", fixed<"N/A">},
    JobField{0, "ntpernode", "NTASKS_PER_NODE",
             [](Context, Row r, Out o) { number(o, r.ask().tasks_per_node); }},
    JobField{0, "ntpersocket", "NTASKS_PER_SOCKET", fixed<"N/A">},
    JobField{0, "numtasks", "TASKS", [](Context, Row r, Out o) { number(o, r.ask().tasks); }},
    JobField{0, "origin", "ORIGIN", fixed<"NA">},
    JobField{0, "originraw", "ORIGIN_RAW", fixed<"NA">},
    JobField{0, "pendingtime", "PENDING_TIME", write_pending_time},
    JobField{0, "preempttime", "PREEMPT_TIME", fixed<"N/A">},
    JobField{0, "prefer", "PREFER", fixed<"(null)">},
    JobField{0, "profile", "PROFILE", fixed<"NotSet">},
    JobField{0, "reboot", "REBOOT", fixed<"0">},
    JobField{0, "reqswitch", "REQ_SWITCH", fixed<"0">},
    JobField{0, "requeue", "REQUEUE",
             [](Context, Row r, Out o) { o += r.workload().requeue ? '1' : '0'; }},
    JobField{0, "resizetime", "RESIZE_TIME", fixed<"N/A">},
    JobField{0, "restartcnt", "RESTART_COUNT",
             [](Context, Row r, Out o) { number(o, r.gang ? r.gang->gang.restarts : 0); }},
    JobField{0, "siblingsactive", "ACTIVE_SIBLINGS", fixed<"NA">},
    JobField{0, "siblingsactiveraw", "ACTIVE_SIBLINGS_RAW", fixed<"NA">},
    JobField{0, "siblingsviable", "VIABLE_SIBLINGS", fixed<"NA">},
    JobField{0, "siblingsviableraw", "VIALBLE_SIBLINGS_RAW", fixed<"NA">},
    JobField{0, "sperboard", "SOCKETS_PER_BOARD", fixed<"0">},
    JobField{0, "stderr", "STDERR",
             [](Context, Row r, Out o) {
               o += output_path(r, OutputKind::kStderr, Patterns::kAsWritten);
             }},
    JobField{0, "stdin", "STDIN",
             [](Context, Row r, Out o) {
               o += output_path(r, OutputKind::kStdin, Patterns::kAsWritten);
             }},
    JobField{0, "stdout", "STDOUT",
             [](Context, Row r, Out o) {
               o += output_path(r, OutputKind::kStdout, Patterns::kAsWritten);
             }},
    JobField{0, "system_comment", "SYSTEM_COMMENT", fixed<"(null)">},
    JobField{0, "tres-alloc", "TRES_ALLOC",
             [](Context c, Row r, Out o) { o += tres_text(r, *c.view); }},
    JobField{0, "tres-bind", "TRES_BIND", fixed<"N/A">},
    JobField{0, "tres-freq", "TRES_FREQ", fixed<"N/A">},
    JobField{0, "tres-per-job", "TRES_PER_JOB",
             [](Context, Row r, Out o) { text_or(o, tres_ask(r.ask(), TresScope::kJob), kNone); }},
    JobField{0, "tres-per-socket", "TRES_PER_SOCKET", fixed<"N/A">},
    JobField{0, "tres-per-task", "TRES_PER_TASK",
             [](Context, Row r, Out o) { text_or(o, tres_ask(r.ask(), TresScope::kTask), kNone); }},
    JobField{0, "wait4switch", "WAIT4SWITCH", fixed<"0:00">},
};

struct Alias {
  std::string_view other, name;
};
constexpr std::array kAliases{Alias{"shared", "oversubscribe"},
                              Alias{"gres", "tres-per-node"},
                              Alias{"tres", "tres-alloc"},
                              Alias{"admincomment", "admin_comment"},
                              Alias{"systemcomment", "system_comment"},
                              Alias{"features", "feature"},
                              Alias{"exitcode", "exit_code"}};

}  // namespace

std::span<const JobField> job_fields() { return kFields; }

std::uint32_t job_field_by_letter(char letter) {
  for (std::size_t i = 0; i < kFields.size(); ++i)
    if (letter != 0 && kFields[i].letter == letter) return static_cast<std::uint32_t>(i);
  return kTextOnly;
}

std::uint32_t job_field_by_name(std::string_view lower_name) {
  for (const Alias& alias : kAliases)
    if (alias.other == lower_name) lower_name = alias.name;
  for (std::size_t i = 0; i < kFields.size(); ++i)
    if (!lower_name.empty() && kFields[i].name == lower_name) return static_cast<std::uint32_t>(i);
  return kTextOnly;
}

}  // namespace tutti::slurm
