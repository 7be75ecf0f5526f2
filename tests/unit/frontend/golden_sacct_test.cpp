#include "frontend/slurm/sacct_render.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

SacctOptions options() {
  SacctOptions o;
  o.times = times(at(20, 10, 0));
  return o;
}

// A job of one task on node01 that is over: 2 CPUs (a core) and 1000M for each.
JobRecord done(std::uint32_t id, const std::string& name, Outcome outcome, ExitStatus exit) {
  WorkloadView view = simple_job(id, name, at(20, 0, 3));
  JobRecord r;
  r.workload = view.workload;
  r.workload.roles.edit()[0].memory_mib_per_cpu = 1000;
  r.cluster = "lab";
  r.partition = "batch";
  r.time_limit = Duration::minutes(10);
  r.eligible = r.workload.submitted;
  r.priority = view.priority;
  GangView gang = gang_on(id, id, GangState::kDone, {"node01"}, 2, 2000, 0);
  r.gang = gang.gang;
  r.nodes = gang.nodes;
  r.gang.outcome = outcome;
  r.gang.exit = exit;
  r.gang.started = r.gang.allocated = r.gang.ended = at(20, 0, 5);
  Step batch;
  batch.id = kBatchStep;
  batch.state = StepState::kDone;
  batch.created = batch.started = batch.ended = at(20, 0, 5);
  batch.exit = exit;
  batch.outcome = outcome;
  batch.usage.cpu_ms = 14;
  batch.slots.push_back(StepSlot{0, {0}, 2, {}, true});
  r.gang.steps.push_back(batch);
  return r;
}

JobRecord never_started(std::uint32_t id, const std::string& name, GangState state,
                        Outcome outcome) {
  JobRecord r = done(id, name, outcome, {});
  r.gang.state = state;
  r.gang.slots.clear();
  r.gang.steps.clear();
  r.gang.started = r.gang.allocated = {};
  r.nodes.clear();
  return r;
}

// The lives of job 31: it ran, was requeued, and was cancelled by root while it waited.
std::vector<JobRecord> lives_of_31() {
  StateView view = jobs_31_to_35();
  JobRecord r;
  r.workload = view.workloads[0].workload;
  r.gang = view.workloads[0].gangs[0].gang;
  r.nodes = view.workloads[0].gangs[0].nodes;
  r.gpu_types = {"rtxpro6000", "rtxpro6000"};
  r.cluster = "lab";
  r.partition = "batch";
  r.gang.state = GangState::kDone;
  r.gang.outcome = Outcome::kRequeued;
  r.gang.ended = at(20, 2, 0);
  JobRecord second = r;
  second.gang.outcome = Outcome::kCancelled;
  second.gang.ended_by_uid = 0;
  second.gang.slots.clear();
  second.gang.steps.clear();
  second.nodes.clear();
  second.gpu_types.clear();
  return {r, second};
}

HistoryView history() {
  HistoryView h;
  ExitStatus ok{};
  h.records = {
      done(1, "demo", Outcome::kCompleted, ok),     done(2, "demo", Outcome::kCompleted, ok),
      done(3, "wrapped", Outcome::kCompleted, ok),  done(4, "demo", Outcome::kCompleted, ok),
      done(5, "fail.sh", Outcome::kFailed, {3, 0}), done(7, "demo", Outcome::kCompleted, ok)};
  for (JobRecord& r : lives_of_31()) h.records.push_back(r);
  return h;
}

HistoryView failures() {
  HistoryView h = history();
  struct Failed {
    std::uint32_t id;
    const char* name;
    ExitStatus exit, derived;
  };
  for (Failed f : {Failed{11, "demo", {1, 0}, {}}, Failed{12, "demo", {1, 0}, {}},
                   Failed{13, "demo", {1, 0}, {}}, Failed{42, "false", {1, 0}, {1, 0}},
                   Failed{44, "bash", {6, 0}, {}}, Failed{45, "bash", {0, 9}, {0, 9}},
                   Failed{46, "nosuchcommand", {2, 0}, {2, 0}}, Failed{48, "true", {1, 0}, {}},
                   Failed{51, "bash", {0, 15}, {0, 15}}, Failed{50, "true", {1, 0}, {}}}) {
    JobRecord r = done(f.id, f.name, Outcome::kFailed, f.exit);
    r.gang.derived_exit = f.derived;
    h.records.push_back(r);
  }
  JobRecord element = done(22, "arr", Outcome::kFailed, {1, 0});
  element.workload.id = WorkloadId(19);
  element.workload.array = "0-7";
  element.gang.array_index = 3;
  h.records.push_back(element);
  return h;
}

// Each cancellation of elements that wait is a row; rows of an array are in the order of elements.
TEST(Sacct, ElementsThatNeverStarted) {
  HistoryView h;
  auto rest = [](const std::string& elements, GangState state) {
    JobRecord r = never_started(19, "arr", state, Outcome::kCancelled);
    r.workload.array = "0-9";
    r.unstarted = elements;
    r.gang.ended_by_uid = 0;
    return r;
  };
  JobRecord first = done(19, "arr", Outcome::kCompleted, {});
  first.workload.array = "0-9";
  first.gang.array_index = 0;
  h.records = {rest("6-7", GangState::kDone), rest("3", GangState::kDone), first,
               rest("8-9", GangState::kPending)};
  SacctOptions o = options();
  o.allocations = true;
  o.no_header = true;
  o.format = "jobid,state";
  o.layout = SacctOptions::Layout::kParsable2;
  EXPECT_EQ(render_sacct(h, o).text,
            "19_0|COMPLETED\n19_3|CANCELLED by 0\n19_[6-7]|CANCELLED by 0\n19_[8-9]|PENDING\n");
}

TEST(Sacct, AStepByItsName) {
  HistoryView h;
  h.records = {done(5, "five", Outcome::kCompleted, {}), done(6, "six", Outcome::kCompleted, {})};
  SacctOptions o = options();
  o.no_header = true;
  o.format = "jobid";
  o.layout = SacctOptions::Layout::kParsable2;
  o.filter.jobs = {{5, {}, kBatchStep}, {6, {}, {}}};
  EXPECT_EQ(render_sacct(h, o).text, "5.batch\n6\n6.batch\n");
  o.filter.jobs = {{5, {}, 7}};
  EXPECT_EQ(render_sacct(h, o).text, "");
}

TEST(GoldenSacct, Listings) {
  auto run = [](HistoryView h, auto change) {
    return [h, change] {
      SacctOptions o = options();
      change(o);
      return render_sacct(h, o);
    };
  };
  using O = SacctOptions;
  auto job = [](std::uint32_t id) { return [id](O& o) { o.filter.jobs = {{id, {}, {}}}; }; };
  std::string many =
      "JobID,JobName,User,Account,Partition,State,ExitCode,Submit,Start,End,Elapsed,ElapsedRaw,"
      "AllocTRES,ReqTRES,NodeList,MaxRSS,TotalCPU";
  HistoryView first = history();
  first.records.resize(6);
  std::vector<Case> cases = {
      {"sacct -X | head -8", 0, run(first, [](O& o) { o.allocations = true; })},
      {"sacct -j 31", 0, run(history(), job(31))},
      {"sacct -j 5", 0, run(history(), job(5))},
      {"sacct -j 1 --parsable2 --format=" + many, 0,
       run(history(),
           [=](O& o) {
             job(1)(o);
             o.format = many;
             o.layout = O::Layout::kParsable2;
           })},
      {"sacct -X -D -j 31 --parsable2 --format=JobID,State,ExitCode,AllocTRES%80,NNodes,NCPUS,"
       "Reason",
       0,
       run(history(),
           [=](O& o) {
             job(31)(o);
             o.allocations = o.duplicates = true;
             o.format = "JobID,State,ExitCode,AllocTRES%80,NNodes,NCPUS,Reason";
             o.layout = O::Layout::kParsable2;
           })},
      {"sacct -n -X -s F -S now-1hours -E now -o "
       "jobid,jobname%15,state,exitcode,derivedexitcode",
       0,
       run(failures(),
           [](O& o) {
             o.no_header = o.allocations = true;
             o.filter.states = {JobState::kFailed};
             o.from = at(19, 10, 0);
             o.to = at(20, 10, 0);
             o.format = "jobid,jobname%15,state,exitcode,derivedexitcode";
           })},
      {"sacct -j 99999", 0, run(history(), job(99999))},
      {"sacct --format=bogus", 0, run(history(), [](O& o) { o.format = "bogus"; })},
      {"sacct -e", 0, [] { return Output{sacct_help_format(), {}, 0}; }},
  };
  compare("sacct.txt", cases,
          {// v0.0.42 instead of 0.0.38; see json_test.
           "sacct --json -j 1 | jq -c \"keys,(.jobs[0]|keys)\"",
           "sacct --json -j 1 | jq \".jobs[0]|del(.steps)\"",
           "sacct --json -j 1 | jq \".jobs[0].steps[0]\""});
}

TEST(GoldenSacct, ArrayAndDependents) {
  HistoryView h;
  for (std::uint32_t i = 0; i < 8; ++i) {
    JobRecord r = i == 3 ? done(19 + i, "arr", Outcome::kFailed, {1, 0})
                         : done(19 + i, "arr", Outcome::kCompleted, {});
    r.workload.id = WorkloadId(19);
    r.workload.array = "0-7";
    r.gang.array_index = i;
    // As Tutti numbers them: the first element has the array's number, others follow 24.
    r.gang.id = GangId(i == 0 ? 19 : 24 + i);
    h.records.push_back(r);
  }
  h.records.push_back(never_started(22, "after", GangState::kPending, Outcome::kNone));
  h.records.push_back(done(23, "afterany", Outcome::kCompleted, {}));
  HistoryView cancelled;
  JobRecord after = never_started(22, "after", GangState::kDone, Outcome::kCancelled);
  after.gang.ended_by_uid = 2001;
  cancelled.records = {after};
  auto run = [](const HistoryView& history) {
    return [&history] {
      SacctOptions o = options();
      o.no_header = o.allocations = true;
      o.format = "jobid,jobname,state,exitcode";
      return render_sacct(history, o);
    };
  };
  std::vector<Case> cases = {
      {"sacct -X -n -j 19,22,23 --format=jobid,jobname,state,exitcode", 0, run(h)},
      {"sacct -X -n -j 22 --format=jobid,jobname,state,exitcode", 0, run(cancelled)}};
  std::vector<std::string> rest;
  for (const Command& command : load("array-dependency.txt")) rest.push_back(command.line);
  compare("array-dependency.txt", cases, rest);
}

TEST(Sacct, EveryFieldOfHelpFormat) {
  for (const SacctField& field : sacct_fields()) {
    SacctOptions o = options();
    o.format = std::string(field.name) + "%30";
    Output out = render_sacct(history(), o);
    EXPECT_EQ(out.exit_code, 0) << field.name;
    EXPECT_TRUE(out.errors.empty()) << field.name;
    // Each line is the width and the blank after it.
    for (std::size_t p = 0; p < out.text.size();) {
      std::size_t end = out.text.find('\n', p);
      EXPECT_EQ(end - p, 31u) << field.name;
      p = end + 1;
    }
  }
}

TEST(Sacct, WidthsUnitsAndDelimiters) {
  SacctOptions o = options();
  o.filter.jobs = {{1, {}, {}}};
  o.no_header = true;
  o.allocations = true;
  o.format = "nodelist%-10,reqmem,jobid%5";
  EXPECT_EQ(render_sacct(history(), o).text, "node01          1000M     1 \n");
  o.units = 'G';
  o.format = "reqmem";
  o.layout = SacctOptions::Layout::kParsable;
  o.delimiter = ";";
  EXPECT_EQ(render_sacct(history(), o).text, "0.98G;\n");
  o.units = 0;
  o.format = "uid,jobidraw,timelimitraw,cluster,allocgres";
  o.layout = SacctOptions::Layout::kParsable2;
  o.delimiter = "\x1f";
  EXPECT_EQ(render_sacct(history(), o).text,
            "2001\x1f"
            "1\x1f"
            "10\x1flab\x1f\n");
}

}  // namespace
}  // namespace tutti::slurm::golden
