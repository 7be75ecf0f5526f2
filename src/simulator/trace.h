// Trace: somebody's job log as data, whatever it was written by. Readers turn text into jobs and
// list what is wrong with it; nothing is left out silently. A trace says what was asked for and how
// long it ran; when it starts here is the simulator's to find out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace tutti::simulator {

// How the job ended in the log.
enum class TraceEnd : std::uint8_t { kUnknown, kCompleted, kFailed, kCancelled };

struct TraceJob {
  std::uint64_t number = 0;  // in the log; its position from 1 where the log has names only
  std::uint32_t line = 0;
  Instant submit;  // from the log's first submission on, or since 1970 where the log says
  Duration run;
  Duration limit = Duration::infinite();  // what its user asked for
  // Zero = not said.
  std::uint32_t nodes = 0;
  std::uint32_t tasks = 1;       // equal members
  std::uint32_t cpus_milli = 0;  // of each task, in 1/1000 CPU
  std::uint64_t memory_mib = 0;  // of each task
  std::uint32_t gpus = 0;        // in total
  std::uint32_t gpus_per_node = 0;
  std::uint32_t gpu_permille = 1000;  // of each GPU
  // Positions in Trace::words; 0 = not said.
  std::uint32_t gpu_types = 0;  // "V100|P100": any of these
  std::uint32_t user = 0, account = 0, partition = 0, application = 0;
  std::int32_t priority = 0;
  // Training whose log gives work instead of time: time for one iteration and how many.
  std::uint64_t iterations = 0, iteration_ms = 0;
  TraceEnd end = TraceEnd::kUnknown;
};

enum class TraceProblemKind : std::uint8_t {
  kMissingField,
  kNotANumber,
  kNegativeTime,
  kNothingAsked,    // neither processors, nodes nor GPUs
  kNeverRan,        // no run time: cancelled while it waited, or still running
  kNumberTwice,     // two jobs with one number
  kMixedTimeZones,  // a time with a zone among times without
  kLargerThanCluster,
  kNotInOrder,  // submitted before the job above it; sorted, not left out
  kOverLimit,   // ran longer than its limit; cut there, not left out
};
// "missing field", for lists.
std::string_view trace_problem_text(TraceProblemKind kind);
// Whether the job is left out; else it was mended as the text above says.
bool drops_the_job(TraceProblemKind kind);

struct TraceProblem {
  std::uint32_t line = 0;
  std::string text;  // "field 4 (run time) is -1"
};

struct TraceProblems {
  struct OfKind {
    std::uint64_t count = 0;
    std::vector<TraceProblem> first;  // ten at most
  };
  std::map<TraceProblemKind, OfKind> kinds;

  void add(TraceProblemKind kind, std::uint32_t line, std::string text);
  std::uint64_t dropped() const;
};

struct Trace {
  std::string source;          // the file's name, for reports
  std::vector<TraceJob> jobs;  // by submission, then by line
  std::vector<std::string> words{""};
  TraceProblems problems;
  std::map<std::string, std::string> header;  // SWF: "MaxProcs" -> "100"
  Instant first_submit;

  std::string_view word(std::uint32_t index) const { return words[index]; }
};

// How the columns of a CSV map to a job's fields. A ready one for each public trace that
// ready_mappings() names; one of your own as text:
//
//   number=job_id submit=submit_time:ms run=duration:ms gpus=num_gpu user=user
//
// FIELD=COLUMN[:UNIT], by blanks or commas. Fields: number name submit start end run limit nodes
// tasks cpus memory gpus gpus_per_node gpu_share gpu_type user account partition application
// priority iterations iteration_time state. A column is its name in the header, or its position
// from 1 ("#3"). Units: of times s (default), ms, us, min, h, iso (2024-01-02T03:04:05Z); of cpus
// each (default), milli; of memory mib (default), kib, gib, bytes; of gpu_share milli (default),
// percent, one. `start` and `end` give a run time where there is no `run`.
struct CsvMapping {
  struct Column {
    std::string field, column, unit;
  };
  std::string name, sentence;
  std::vector<Column> columns;
  char separator = ',';
  bool has_header = true;
};

// Errors: kInvalid, naming the word of the mapping and what is known.
Result<CsvMapping> parse_csv_mapping(std::string_view text);
// By name: batsim, elasticflow, muri, openb, shockwave, tiresias.
const std::vector<CsvMapping>& ready_mappings();
const CsvMapping* find_ready_mapping(std::string_view name);

// The Standard Workload Format: 18 columns, ';' header lines. Source: the Parallel Workloads
// Archive's definition (version 2.2). Processors are field 8, else field 5. -1 = unknown.
Trace read_swf(std::string_view text);

// What `sacct --parsable2` (or --parsable) prints with a header. Needed columns: JobID, Submit,
// and Elapsed, ElapsedRaw or Start and End; used as well: Timelimit(Raw), State, NNodes, NCPUS,
// AllocCPUS, ReqCPUS, NTasks, ReqMem, AllocTRES, ReqTRES, User, Account, Partition, JobName,
// Priority. Lines of steps are passed over. Times without a zone are UTC. Errors: no header, or
// columns that are needed are not there (all of them named).
Result<Trace> read_sacct(std::string_view text);

// Errors: a column of the mapping that the header does not have (all of them named, with those
// it has).
Result<Trace> read_csv(std::string_view text, const CsvMapping& mapping);

enum class TraceFormat : std::uint8_t { kAuto, kSwf, kSacct, kCsv };
// Tells the format from the text: SWF by its ';' or 18 numbers, sacct by its header, a public
// trace by its columns. Errors: as the readers', or that the format cannot be told, naming what
// may be asked for.
Result<Trace> read_trace(std::string_view text, std::string source,
                         TraceFormat format = TraceFormat::kAuto,
                         const CsvMapping* mapping = nullptr);

}  // namespace tutti::simulator
