#include "frontend/slurm/squeue_render.h"
#include "model/reasons.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

SqueueOptions options(Instant now) {
  SqueueOptions o;
  o.times = times(now);
  return o;
}

TEST(GoldenSqueue, QueueOfFiveJobs) {
  StateView view = jobs_31_to_35();
  auto run = [&](Instant now, auto change) {
    return [&view, now, change] {
      SqueueOptions o = options(now);
      change(o);
      return render_squeue(view, o);
    };
  };
  Instant first = at(20, 1, 19), later = at(20, 1, 20);
  using O = SqueueOptions;
  auto nothing = [](O&) {};
  std::string columns = "%i|%P|%j|%u|%a|%t|%T|%M|%L|%l|%D|%C|%m|%b|%N|%R|%r|%Q|%p|%S|%V|%e|%k|%Z";
  std::string people = "%.10i %.9P %.20j %.8u %.2t %.10M %.6D %R";
  std::string names = "JobID:10,Name:30,State:12,tres-alloc:60,tres-per-node:25,ReasonList:20";
  std::vector<Case> cases = {
      {"squeue", 0, run(first, nothing)},
      {"squeue -l", 0, run(first, [](O& o) { o.long_form = true; })},
      {"squeue -o \"" + columns + "\"", 0, run(first, [=](O& o) { o.format = columns; })},
      {"squeue -o \"" + people + "\"", 0, run(later, [=](O& o) { o.format = people; })},
      {"squeue -O \"" + names + "\"", 0, run(later, [=](O& o) { o.name_format = names; })},
      {"squeue --start", 0, run(later, [](O& o) { o.kind = O::Kind::kStart; })},
      {"squeue -s", 0, run(later, [](O& o) { o.kind = O::Kind::kSteps; })},
      {"squeue -h -t R -o %i", 0,
       run(later,
           [](O& o) {
             o.no_header = true;
             o.filter.states = {JobState::kRunning};
             o.format = "%i";
           })},
      {"squeue -j 31 -h", 0,
       run(later,
           [](O& o) {
             o.no_header = true;
             o.filter.jobs = {{31, {}, {}}};
           })},
      {"squeue -j 99999", 0, run(later, [](O& o) { o.filter.jobs = {{99999, {}, {}}}; })},
      {"squeue -p nosuch", 0, run(later, [](O& o) { o.filter.partitions = {"nosuch"}; })},
      {"squeue --me -S -i -o \"%i %t\"", 0,
       run(later,
           [](O& o) {
             o.filter.users = {"alice"};
             o.sort = "-i";
             o.format = "%i %t";
           })},
  };
  compare("squeue.txt", cases,
          {"sbatch --parsable train.sh",
           "sbatch --parsable -J wide -N 4 --gres=gpu:8 -t 30 --wrap=\"sleep 60\"",
           "sbatch --parsable -J held --hold ok.sh",
           "sbatch --parsable -J a-very-long-job-name-indeed -N 4 --exclusive -p short -t 5 "
           "--wrap=\"sleep 60\"",
           "sbatch --parsable -J later --begin=now+2hours ok.sh",
           // What the option parser says before anything is rendered.
           "squeue -u nobody1", "squeue -t BOGUS"});
}

WorkloadView waiting(std::uint32_t id, const std::string& name, std::string_view why) {
  WorkloadView job = simple_job(id, name, at(20, 0, 15));
  job.wait.emplace();
  job.wait->reason = std::string(why);
  return job;
}

TEST(GoldenSqueue, ArraysAndDependencies) {
  StateView array = array_19();
  auto of = [](const StateView& view, Instant now, auto change) {
    return [&view, now, change] {
      SqueueOptions o = options(now);
      change(o);
      return render_squeue(view, o);
    };
  };
  using O = SqueueOptions;

  StateView dependent = array;
  WorkloadView after = waiting(22, "after", reason::kDependency);
  after.workload.extras.edit().dependencies = {{DependencyKind::kAfterOk, 19, {}, 0}};
  WorkloadView any = waiting(23, "afterany", reason::kDependency);
  any.workload.extras.edit().dependencies = {{DependencyKind::kAfterAny, 19, {}, 0}};
  WorkloadView single = waiting(24, "single", reason::kNoneYet);
  single.workload.extras.edit().dependencies = {{DependencyKind::kSingleton, 0, {}, 0}};
  dependent.workloads.insert(dependent.workloads.end(), {after, any, single});

  // All elements are over; the third failed.
  StateView failed = array;
  failed.workloads[0].unstarted.clear();
  for (GangView& gang : failed.workloads[0].gangs) {
    gang.gang.state = GangState::kDone;
    gang.gang.outcome = Outcome::kCompleted;
  }
  after.wait->reason = std::string(reason::kDependencyNever);
  failed.workloads.push_back(after);

  StateView odd = cluster();
  WorkloadView held = waiting(30, "odd", reason::kHeldUser);
  held.workload.array = "1,3,5-9:2";
  held.workload.array_throttle = 1;
  held.workload.hold = Hold::kUser;
  held.simple_unstarted = false;
  held.unstarted = "1,3,5,7,9";
  odd.workloads = {held};

  std::string with_dependency = "%.18i %.10j %.8T %.20r %E";
  std::string never = "%.18i %.10j %.8T %.24r %E";
  std::string ids = "%i %K %F %A %t %r";
  std::vector<Case> cases = {
      {"squeue -j 19", 0, of(array, at(20, 0, 15), [](O& o) { o.filter.jobs = {{19, {}, {}}}; }),
       Match::kAnyOrderOfLines},
      {"squeue -r -j 19", 0,
       of(array, at(20, 0, 15),
          [](O& o) {
            o.filter.jobs = {{19, {}, {}}};
            o.arrays = ArrayRows::kByElement;
          }),
       Match::kAnyOrderOfLines},
      {"squeue -u alice -o '" + with_dependency + "'", 0,
       of(dependent, at(20, 0, 16), [=](O& o) { o.format = with_dependency; }),
       Match::kAnyOrderOfLines},
      {"squeue -u alice -o '" + never + "'", 0,
       of(failed, at(20, 0, 40), [=](O& o) { o.format = never; })},
      {"squeue -u alice -o \"" + ids + "\"", 0,
       of(odd, at(20, 0, 41), [=](O& o) { o.format = ids; })},
      {"squeue -u alice -r -o \"" + ids + "\"", 0,
       of(odd, at(20, 0, 41),
          [=](O& o) {
            o.format = ids;
            o.arrays = ArrayRows::kByElement;
          })},
  };
  compare(
      "array-dependency.txt", cases,
      {"sbatch --parsable --array=0-7%2 -J arr --wrap='sleep 3; exit "
       "$((SLURM_ARRAY_TASK_ID==3))'",
       "sbatch --parsable -J after --dependency=afterok:19 ok.sh",
       "sbatch --parsable -J afterany --dependency=afterany:19 ok.sh",
       "sbatch --parsable -J single --dependency=singleton ok.sh",
       "sbatch --array=1,3,5-9:2%1 -J odd --hold ok.sh", "scancel -v $(squeue -h -o %A -n odd)",
       // Compared in golden_scontrol_test and golden_sacct_test.
       "scontrol show job 19_1", "sacct -X -n -j 19,22,23 --format=jobid,jobname,state,exitcode",
       "sacct -X -n -j 22 --format=jobid,jobname,state,exitcode"});
}

}  // namespace
}  // namespace tutti::slurm::golden
