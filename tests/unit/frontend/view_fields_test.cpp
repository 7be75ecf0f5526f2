// Every letter and name of squeue and sinfo, the two format languages, names in UTF-8, clock
// changes, and how long a full queue takes.
#include <fmt/format.h>

#include <chrono>
#include <set>

#include "base/text.h"
#include "frontend/slurm/sinfo_render.h"
#include "frontend/slurm/squeue_fields.h"
#include "frontend/slurm/squeue_render.h"
#include "model/reasons.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

SqueueOptions squeue_options(std::string format = {}) {
  SqueueOptions o;
  o.times = times(at(20, 1, 19));
  o.format = std::move(format);
  return o;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::string_view line : split(text, '\n', EmptyPieces::kDrop)) out.emplace_back(line);
  return out;
}

StateView mixed_queue() {
  StateView view = jobs_31_to_35();
  StateView array = array_19();
  view.workloads.push_back(array.workloads[0]);
  WorkloadView het = simple_job(40, "het", at(20, 1, 0));
  het.workload.roles.edit().resize(2);
  het.workload.roles.edit()[1].tasks = 2;
  view.workloads.push_back(het);
  return view;
}

TEST(SqueueFields, EveryLetterHasAColumn) {
  StateView view = mixed_queue();
  std::set<char> letters;
  for (const JobField& field : job_fields()) {
    if (field.letter == 0) continue;
    letters.insert(field.letter);
    Output out = render_squeue(view, squeue_options(std::string("%.25") + field.letter + "|"));
    EXPECT_TRUE(out.errors.empty()) << field.letter << out.errors;
    std::vector<std::string> lines = lines_of(out.text);
    EXPECT_EQ(lines.size(), 11u) << field.letter;  // header, 5 jobs, 3 of the array, 2 of the het
    for (const std::string& line : lines) EXPECT_EQ(line.size(), 26u) << field.letter << line;
    EXPECT_EQ(trim(lines[0]), std::string(field.header) + "|") << field.letter;
  }
  // Slurm has all 52.
  EXPECT_EQ(letters.size(), 52u);
  for (char c : kAllJobLetters) EXPECT_TRUE(letters.contains(c)) << c;
}

TEST(SqueueFields, EveryNameInAnyCase) {
  StateView view = mixed_queue();
  for (const JobField& field : job_fields()) {
    SqueueOptions o = squeue_options();
    o.name_format = upper(field.name) + ":30;";
    Output out = render_squeue(view, o);
    EXPECT_TRUE(out.errors.empty()) << field.name << out.errors;
    std::vector<std::string> lines = lines_of(out.text);
    EXPECT_EQ(lines.size(), 11u) << field.name;
    for (const std::string& line : lines) EXPECT_EQ(line.size(), 31u) << field.name;
  }
}

// The list that Open OnDemand asks for.
TEST(SqueueFields, NamesOfOpenOnDemand) {
  for (const char* name :
       {"Account",    "JobID",         "BatchHost",   "MinCpus",    "NumCPUs",      "MinTmpDisk",
        "NumNodes",   "EndTime",       "Dependency",  "Feature",    "ArrayJobID",   "GroupName",
        "GroupID",    "OverSubscribe", "Sockets",     "JobArrayID", "Cores",        "Name",
        "Threads",    "Comment",       "ArrayTaskID", "TimeLimit",  "TimeLeft",     "MinMemory",
        "TimeUsed",   "ReqNodes",      "NodeList",    "Command",    "Contiguous",   "QOS",
        "Partition",  "PriorityLong",  "Reason",      "StartTime",  "StateCompact", "State",
        "UserName",   "UserID",        "Reservation", "SubmitTime", "WCKey",        "Licenses",
        "ExcNodes",   "CoreSpec",      "Nice",        "SchedNodes", "SCT",          "WorkDir",
        "tres-alloc", "tres-per-node", "stdout",      "stderr"})
    EXPECT_NE(job_field_by_name(lower(name)), kTextOnly) << name;
}

TEST(SqueueFields, StepsToo) {
  StateView view = jobs_31_to_35();
  for (const StepField& field : step_fields()) {
    SqueueOptions o = squeue_options();
    o.kind = SqueueOptions::Kind::kSteps;
    o.name_format = std::string(field.name) + ":.22|";
    Output out = render_squeue(view, o);
    EXPECT_TRUE(out.errors.empty()) << field.name;
    for (const std::string& line : lines_of(out.text)) EXPECT_EQ(line.size(), 23u) << field.name;
  }
}

TEST(SinfoFields, EveryLetterAndName) {
  StateView view = jobs_31_to_35();
  for (const SinfoField& field : sinfo_fields()) {
    SinfoOptions o;
    o.times = times(at(20, 1, 19));
    o.by_node = true;
    if (field.letter != 0) {
      o.format = std::string("%.25") + field.letter + "|";
      Output out = render_sinfo(view, o);
      std::vector<std::string> lines = lines_of(out.text);
      EXPECT_EQ(lines.size(), 9u) << field.letter;
      for (const std::string& line : lines) EXPECT_EQ(line.size(), 26u) << field.letter;
      EXPECT_EQ(trim(lines[0]), std::string(field.header) + "|");
    }
    o.name_format = upper(field.name) + ":25";
    Output out = render_sinfo(view, o);
    EXPECT_TRUE(out.errors.empty()) << field.name << out.errors;
    EXPECT_EQ(lines_of(out.text).size(), 9u) << field.name;
  }
}

struct FormatCase {
  const char* format;
  const char* header;
  const char* row;  // of job 31
};

TEST(Formats, LettersAsSqueueReadsThem) {
  StateView view = jobs_31_to_35();
  for (const FormatCase& c : {
           FormatCase{"%i %t", "JOBID ST", "31 R"},
           FormatCase{"%%i|%%T", "JOBID|STATE", "31|RUNNING"},
           FormatCase{"x%.5iy%5jz w", "xJOBIDyNAME z w", "x   31ytrainz w"},
           FormatCase{"%.2i|%3j", "JO|NAM", "31|tra"},
           FormatCase{"\"%i\",\"%j\"", "\"JOBID\",\"NAME\"", "\"31\",\"train\""},
           FormatCase{"abc", "abc", "abc"},
           FormatCase{"%i %", "JOBID ", "31 "},
           FormatCase{"%-10i|", "%-10i|", "%-10i|"},
       }) {
    SqueueOptions o = squeue_options(c.format);
    o.filter.jobs = {{31, {}, {}}};
    EXPECT_EQ(render_squeue(view, o).text, std::string(c.header) + "\n" + c.row + "\n") << c.format;
  }
}

TEST(Formats, NamesAsSqueueReadsThem) {
  StateView view = jobs_31_to_35();
  for (const FormatCase& c : {
           FormatCase{"jobid", "JOBID               ", "31                  "},
           FormatCase{"jobid:.10,name:5,state:.3", "     JOBIDNAME STA", "        31trainRUN"},
           FormatCase{"jobid:10abc,name:5|,state:.12;", "JOBID     abcNAME |       STATE;",
                      "31        abctrain|     RUNNING;"},
           FormatCase{"jobid:,name:", "JOBIDNAME", "31train"},
           FormatCase{"JOBID:###turm###,name:###turm###", "JOBID###turm###NAME###turm###",
                      "31###turm###train###turm###"},
           FormatCase{"jobid:\x1f,user:\x1f", "JOBID\x1f", "31\x1f"},
       }) {
    SqueueOptions o = squeue_options();
    o.name_format = c.format;
    o.filter.jobs = {{31, {}, {}}};
    EXPECT_EQ(render_squeue(view, o).text, std::string(c.header) + "\n" + c.row + "\n") << c.format;
  }
  SqueueOptions o = squeue_options();
  o.name_format = "bogus:10,jobid:";
  Output out = render_squeue(view, o);
  EXPECT_EQ(out.errors, "squeue: error: Invalid job format specification: bogus\n");
  EXPECT_EQ(out.exit_code, 0);
}

TEST(Formats, UnknownSinfoLettersStayAsWritten) {
  StateView view = cluster();
  SinfoOptions o;
  o.format = "%R|%i|%j|";
  o.partitions = {"batch"};
  Output out = render_sinfo(view, o);
  EXPECT_EQ(out.text, "PARTITION|%i|%j|\nbatch|%i|%j|\n");
  EXPECT_EQ(out.errors,
            "Invalid node format specification: i\nInvalid node format specification: j\n");
}

TEST(Utf8, BytesSurviveAndACutBreaksNoCharacter) {
  StateView view = cluster();
  // h, é (2 bytes), a smiling face (4 bytes): 7 bytes, then letters.
  view.workloads = {simple_job(1, "h\u00e9\U0001F642toolong", at(20, 0, 0))};
  SqueueOptions o = squeue_options("%.8j|");
  o.no_header = true;
  // As Slurm: 8 bytes.
  EXPECT_EQ(render_squeue(view, o).text, "h\u00e9\U0001F642t|\n");
  o.format = "%.5j|%2j|%j|";
  // Slurm would stop within a character here.
  EXPECT_EQ(render_squeue(view, o).text, "h\u00e9  |h |h\u00e9\U0001F642toolong|\n");
}

// Central European rules of 2026 without the system's tables: +2 h between March 29 and October 25.
class Berlin final : public TimeZone {
 public:
  CivilTime to_civil(Instant instant) const override {
    std::int64_t seconds = instant.whole_seconds();
    bool summer = seconds >= 1774746000 && seconds < 1792890000;
    return UtcZone().to_civil(Instant::from_ms((seconds + (summer ? 7200 : 3600)) * 1000));
  }
  Instant to_instant(const CivilTime& civil) const override {
    return UtcZone().to_instant(civil) + Duration::seconds(-3600);
  }
  std::string abbreviation(Instant) const override { return "CET"; }
};

TEST(Times, AcrossAClockChange) {
  Berlin zone;
  TimeText text(zone, "", Instant::from_ms(1792890000'000));
  EXPECT_EQ(text.text(Instant::from_ms(1792889999'000)), "2026-10-25T02:59:59");
  EXPECT_EQ(text.text(Instant::from_ms(1792890000'000)), "2026-10-25T02:00:00");
  EXPECT_EQ(text.text(Instant::from_ms(1774745999'000)), "2026-03-29T01:59:59");
  EXPECT_EQ(text.text(Instant::from_ms(1774746000'000)), "2026-03-29T03:00:00");
  EXPECT_EQ(text.ctime(Instant::from_ms(1792890000'000)), "Sun Oct 25 02:00:00 2026");
}

TEST(Times, SlurmTimeFormat) {
  StateView view = jobs_31_to_35();
  SqueueOptions o = squeue_options("%S %V %e");
  o.no_header = true;
  o.filter.jobs = {{33, {}, {}}};
  o.times = times(at(20, 1, 19), "%s");
  EXPECT_EQ(render_squeue(view, o).text, "N/A 1796068843 N/A\n");
  o.times = times(at(20, 1, 19), "standard");
  EXPECT_EQ(render_squeue(view, o).text, "N/A 2026-11-30T20:00:43 N/A\n");
  o.times = times(at(20, 1, 19), "%H:%M");
  EXPECT_EQ(render_squeue(view, o).text, "N/A 20:00 N/A\n");
}

TEST(Memory, AsSlurmWritesIt) {
  EXPECT_EQ(memory_text(0), "0");
  EXPECT_EQ(memory_text(1000), "1000M");
  EXPECT_EQ(memory_text(1024), "1G");
  EXPECT_EQ(memory_text(1536), "1.50G");
  EXPECT_EQ(memory_text(65536), "64G");
  EXPECT_EQ(memory_text(1000000), "1000000M");
  EXPECT_EQ(memory_text(2048000), "2000G");
  EXPECT_EQ(memory_text(1048576), "1T");
  EXPECT_EQ(memory_text(65536, Units::kKeep), "65536M");
}

TEST(Rows, HeterogeneousAndSingleElements) {
  StateView view = mixed_queue();
  SqueueOptions o = squeue_options("%i %A %K %C");
  o.no_header = true;
  o.filter.jobs = {{40, {}, {}}};
  EXPECT_EQ(render_squeue(view, o).text, "40+0 40 N/A 1\n40+1 40 N/A 2\n");
  o.filter.jobs = {{19, 5, {}}};  // one of the waiting rest
  EXPECT_EQ(render_squeue(view, o).text, "19_[2-7%2] 19 2-7%2 1\n");
  o.arrays = ArrayRows::kByElement;
  EXPECT_EQ(render_squeue(view, o).text, "19_5 19 5 1\n");
  // 21 is the number that element 1 got when it started.
  o.filter.jobs = {{21, {}, {}}};
  EXPECT_EQ(render_squeue(view, o).text, "19_1 21 1 2\n");
}

TEST(Rows, EveryReasonHasSlurmsWord) {
  StateView view = cluster();
  view.workloads = {simple_job(1, "w", at(20, 0, 0))};
  view.workloads[0].wait.emplace();
  for (auto [why, word] :
       {std::pair{reason::kPriority, "Priority"}, std::pair{reason::kResources, "Resources"},
        std::pair{reason::kDependency, "Dependency"},
        std::pair{reason::kDependencyNever, "DependencyNeverSatisfied"},
        std::pair{reason::kBeginTime, "BeginTime"}, std::pair{reason::kHeldUser, "JobHeldUser"},
        std::pair{reason::kHeldAdmin, "JobHeldAdmin"},
        std::pair{reason::kArrayThrottle, "JobArrayTaskLimit"},
        std::pair{reason::kPartitionStopped, "PartitionDown"},
        std::pair{reason::kPartitionInactive, "PartitionInactive"},
        std::pair{reason::kPartitionNodeLimit, "PartitionNodeLimit"},
        std::pair{reason::kPartitionTimeLimit, "PartitionTimeLimit"},
        std::pair{reason::kRequestedNodesBusy, "ReqNodeNotAvail"},
        std::pair{reason::kLaunchFailedHeld, "launch failed requeued held"},
        std::pair{reason::kRetrying, "BeginTime"}, std::pair{reason::kCleaning, "Cleaning"},
        std::pair{reason::kReservedForMaintenance, "ReqNodeNotAvail, Reserved for maintenance"},
        std::pair{reason::kReservedForOthers, "ReqNodeNotAvail, May be reserved for other job"},
        std::pair{reason::kReservation, "Reservation"},
        std::pair{reason::kReservationGone, "ReservationDeleted"},
        std::pair{reason::kNoneYet, "None"}}) {
    view.workloads[0].wait->reason = std::string(why);
    SqueueOptions o = squeue_options("%r|%R");
    o.no_header = true;
    EXPECT_EQ(render_squeue(view, o).text, std::string(word) + "|(" + word + ")\n");
  }
}

TEST(Rows, EndedStatesOnlyWhenAskedFor) {
  StateView view = jobs_31_to_35();
  Gang& gang = view.workloads[0].gangs[0].gang;
  gang.state = GangState::kDone;
  gang.ended = at(20, 1, 0);
  SqueueOptions o = squeue_options("%t %T %R %M");
  o.no_header = true;
  o.filter.jobs = {{31, {}, {}}};
  EXPECT_EQ(render_squeue(view, o).text, "");
  o.filter.all_states = true;
  for (auto [outcome, text] : {std::pair{Outcome::kCompleted, "CD COMPLETED node[01-02]"},
                               std::pair{Outcome::kFailed, "F FAILED (NonZeroExitCode)"},
                               std::pair{Outcome::kCancelled, "CA CANCELLED node[01-02]"},
                               std::pair{Outcome::kTimeout, "TO TIMEOUT (TimeLimit)"},
                               std::pair{Outcome::kNodeFail, "NF NODE_FAIL node[01-02]"},
                               std::pair{Outcome::kOutOfMemory, "OOM OUT_OF_MEMORY (OutOfMemory)"},
                               std::pair{Outcome::kPreempted, "PR PREEMPTED node[01-02]"},
                               std::pair{Outcome::kDeadline, "DL DEADLINE (DeadLine)"},
                               std::pair{Outcome::kLaunchFailed, "BF BOOT_FAIL node[01-02]"},
                               std::pair{Outcome::kRequeued, "RQ REQUEUED node[01-02]"}}) {
    gang.outcome = outcome;
    EXPECT_EQ(render_squeue(view, o).text, std::string(text) + " 0:18\n");
  }
}

TEST(Nodes, StatesAndTheirWords) {
  NodeView node = cluster().nodes[0];
  auto words = [&] {
    SlurmNodeState s = node_state(node);
    return node_state_compact(s) + " " + node_state_long(s) + " " + node_state_complete(s);
  };
  EXPECT_EQ(words(), "idle idle IDLE");
  node.planned = true;
  EXPECT_EQ(words(), "plnd planned IDLE+PLANNED");
  node.planned = false;
  node.cpus_allocated = 8;
  EXPECT_EQ(words(), "mix mixed MIXED");
  node.state.drained = true;
  EXPECT_EQ(words(), "drng draining MIXED+DRAIN");
  node.cpus_allocated = 0;
  EXPECT_EQ(words(), "drain drained IDLE+DRAIN");
  node.state.drained = false;
  node.cpus_allocated = 128;
  EXPECT_EQ(words(), "alloc allocated ALLOCATED");
  node.ending = true;
  EXPECT_EQ(words(), "comp completing ALLOCATED+COMPLETING");
  node.ending = false;
  node.cpus_allocated = 0;
  node.state.status = NodeStatus::kUnknown;
  EXPECT_EQ(words(), "idle* idle* IDLE+NOT_RESPONDING");
  node.state.status = NodeStatus::kNeverSeen;
  EXPECT_EQ(words(), "unk* unknown* UNKNOWN+NOT_RESPONDING");
  node.state.status = NodeStatus::kLost;
  EXPECT_EQ(words(), "down down DOWN");
}

TEST(Speed, FullQueueInTheDefaultFormat) {
  StateView view = cluster();
  for (std::uint32_t i = 1; i <= 11'000; ++i) {
    WorkloadView w = simple_job(i, "job-of-" + std::to_string(i % 97), at(20, 0, 0));
    w.priority.total = 1000 + (i * 7919) % 5000;
    w.wait.emplace();
    w.wait->reason = std::string(reason::kPriority);
    if (i <= 1000) {
      w.simple_unstarted = false;
      w.gangs.push_back(gang_on(i, i, GangState::kRunning, {"node01"}, 2, 2000, 0));
      w.gangs.back().gang.started = at(20, 0, 1);
    }
    view.workloads.push_back(std::move(w));
  }
  auto start = std::chrono::steady_clock::now();
  Output out = render_squeue(view, squeue_options());
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(lines_of(out.text).size(), 11'001u);
  fmt::print("squeue of 11,000 jobs: {:.1f} ms, {} bytes\n", took.count(), out.text.size());
}

}  // namespace
}  // namespace tutti::slurm::golden
