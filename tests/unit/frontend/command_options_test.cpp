#include "frontend/slurm/command_options.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "model/event.h"

namespace tutti::slurm {
namespace {

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> out;
  for (std::string_view word : split(line, ' ', EmptyPieces::kDrop)) out.emplace_back(word);
  return out;
}
ClientContext alice(std::vector<std::string> environment = {}) {
  ClientContext context;
  context.environment = Environment(std::move(environment));
  context.user = "alice";
  context.uid = 2001;
  context.now = Instant::from_ms(1'796'068'800'000);  // 2026-12-01 00:00 UTC
  return context;
}
using Words = std::vector<std::string>;
template <class T>
std::string error_of(const Parsed<T>& parsed) {
  return parsed ? "no error" : fmt::format("{}[{}]", parsed.error().text, parsed.error().exit_code);
}

TEST(Scancel, CancelsManyJobsAndTheirElements) {
  auto parsed = parse_scancel(words("-v 12 13_4,14_[1-3] 15.0 16.batch"), alice());
  ASSERT_TRUE(parsed.has_value());
  ASSERT_EQ(parsed->requests.size(), 3U);
  EXPECT_EQ(parsed->requests[0].verb, Verb::kCancel);
  ASSERT_EQ(parsed->requests[0].jobs.size(), 3U);
  EXPECT_EQ(parsed->requests[0].jobs[1].job, 13U);
  EXPECT_EQ(parsed->requests[0].jobs[1].array, "4");
  EXPECT_EQ(parsed->requests[0].jobs[2].array, "1-3");
  EXPECT_EQ(parsed->requests[1].step, 0);
  EXPECT_EQ(parsed->requests[2].step, kBatchStep);
  EXPECT_EQ(parsed->names, words("12 13_4 14_[1-3] 15.0 16.batch"));
  EXPECT_EQ(parsed->verbose, 1U);
}

TEST(Scancel, SignalsStepsUnlessTheBatchShellIsMeant) {
  auto steps = parse_scancel(words("12 --signal USR1"), alice());
  auto batch = parse_scancel(words("-b -s 10 12"), alice());
  auto both = parse_scancel(words("-f -s SIGUSR1 12"), alice());
  auto kill = parse_scancel(words("--signal=KILL 12"), alice());
  ASSERT_TRUE(steps && batch && both && kill);
  EXPECT_EQ(steps->requests[0].verb, Verb::kSignal);
  EXPECT_EQ(steps->requests[0].signal, 10);
  EXPECT_TRUE(steps->requests[0].to_steps && !steps->requests[0].to_batch);
  EXPECT_TRUE(!batch->requests[0].to_steps && batch->requests[0].to_batch);
  EXPECT_TRUE(both->requests[0].to_steps && both->requests[0].to_batch);
  EXPECT_EQ(kill->requests[0].verb, Verb::kCancel);
}

TEST(Scancel, FiltersStandForJobs) {
  auto parsed = parse_scancel(words("--me -t PD,running -p gpu -n train"), alice());
  ASSERT_TRUE(parsed.has_value());
  ASSERT_EQ(parsed->requests.size(), 1U);
  EXPECT_EQ(parsed->requests[0].user, "alice");
  EXPECT_EQ(parsed->requests[0].partition, "gpu");
  EXPECT_EQ(parsed->requests[0].name, "train");
  EXPECT_EQ(parsed->requests[0].states, words("pending running"));
}

TEST(Scancel, RefusesInSlurmsWords) {
  EXPECT_EQ(error_of(parse_scancel(Words{}, alice())),
            "scancel: error: No job identification provided\n[1]");
  EXPECT_EQ(error_of(parse_scancel(words("abc"), alice())),
            "scancel: error: Invalid job id abc\n[1]");
  EXPECT_EQ(error_of(parse_scancel(words("12_x"), alice())),
            "scancel: error: Invalid job id 12_x\n[1]");
  EXPECT_EQ(error_of(parse_scancel(words("-s FOO 3"), alice())), "Unknown job signal: FOO\n[1]");
  EXPECT_EQ(error_of(parse_scancel(words("-t FOO 3"), alice())),
            "Invalid job state specified: FOO\n"
            "Valid job states are PENDING, RUNNING, and SUSPENDED\n[1]");
  EXPECT_EQ(error_of(parse_scancel(words("--foo"), alice())),
            "scancel: unrecognized option '--foo'\n"
            "Try \"scancel --help\" for more information\n[1]");
}

TEST(Squeue, TakesWhatClientsSay) {
  auto parsed =
      parse_squeue(words("-h -j 12,13_4 -o %i|%T -t PD,running -u a,b -w n[1-2] -r --me"), alice());
  ASSERT_TRUE(parsed.has_value()) << error_of(parsed);
  EXPECT_TRUE(parsed->no_header && parsed->array);
  ASSERT_EQ(parsed->jobs.size(), 2U);
  EXPECT_EQ(parsed->jobs[1].job.array, "4");
  EXPECT_EQ(parsed->format, "%i|%T");
  EXPECT_EQ(parsed->states, words("PENDING RUNNING"));
  EXPECT_EQ(parsed->users, words("a b alice"));
  EXPECT_EQ(parsed->nodes, words("n1 n2"));
  auto nextflow =
      parse_squeue(Words{"--noheader", "-o", "%i %t", "-t", "all", "-u", "alice"}, alice());
  ASSERT_TRUE(nextflow.has_value());
  EXPECT_TRUE(nextflow->all_states);
  EXPECT_EQ(nextflow->format, "%i %t");
  auto json = parse_squeue(words("--json --start --sort=-V --Format=JobID:|,State:"), alice());
  ASSERT_TRUE(json.has_value());
  EXPECT_TRUE(json->json && json->start);
  EXPECT_EQ(json->name_format, "JobID:|,State:");
  EXPECT_EQ(json->sort, "-V");
}

TEST(Squeue, ReadsItsVariablesBelowItsOptions) {
  ClientContext context = alice({"SQUEUE_FORMAT=%A", "SQUEUE_STATES=R", "SQUEUE_USERS=bob"});
  auto variables = parse_squeue(Words{}, context);
  ASSERT_TRUE(variables.has_value());
  EXPECT_EQ(variables->format, "%A");
  EXPECT_EQ(variables->states, words("RUNNING"));
  auto line = parse_squeue(words("-o %i -u carol -t all"), context);
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->format, "%i");
  EXPECT_EQ(line->users, words("carol"));
  EXPECT_TRUE(line->all_states && line->states.empty());
}

TEST(Squeue, RefusesInSlurmsWords) {
  EXPECT_EQ(error_of(parse_squeue(words("-j 3,x"), alice())),
            "squeue: error: Invalid job id: x\n[1]");
  std::string state = error_of(parse_squeue(words("-t foo"), alice()));
  EXPECT_TRUE(
      state.starts_with("squeue: error: Invalid job state specified: foo\n"
                        "squeue: error: Valid job states include: PENDING,RUNNING,"))
      << state;
}

TEST(JobStates, EveryStateThatClientsNameIsKnown) {
  for (std::string_view word :
       split("R,S,CG,RS,SI,SO,ST,PD,CF,RF,RH,RQ,SE,CA,CD,F,TO,NF,PR,BF,DL,OOM,RV,RD", ','))
    EXPECT_TRUE(job_state_name(word).has_value()) << word;
  EXPECT_FALSE(job_state_name("PEND").has_value());
}

TEST(Sinfo, TakesWhatClientsSay) {
  auto parsed = parse_sinfo(
      Words{"-ahNO", "nodehost:100,gres:512", "-p", "gpu", "-n", "n[1-2],n7", "-t", "idle,ALLOC"},
      alice());
  ASSERT_TRUE(parsed.has_value()) << error_of(parsed);
  EXPECT_TRUE(parsed->all && parsed->no_header && parsed->by_node);
  EXPECT_EQ(parsed->name_format, "nodehost:100,gres:512");
  EXPECT_EQ(parsed->nodes, words("n1 n2 n7"));
  EXPECT_EQ(parsed->states, words("idle alloc"));
  auto exporter = parse_sinfo(Words{"-h", "-o%R,%C"}, alice());
  ASSERT_TRUE(exporter.has_value());
  EXPECT_EQ(exporter->format, "%R,%C");
}

TEST(Sacct, TakesWhatClientsSay) {
  auto parsed = parse_sacct(
      words("-X -n -P -j 12 -j 13 -o jobid,state%20 --format=end -S now-7days -E now -s CD,F"),
      alice());
  ASSERT_TRUE(parsed.has_value()) << error_of(parsed);
  EXPECT_TRUE(parsed->allocations && parsed->no_header && parsed->parsable2);
  EXPECT_EQ(parsed->jobs.size(), 2U);
  EXPECT_EQ(parsed->format, "jobid,state%20,end");
  EXPECT_EQ(parsed->states, words("COMPLETED FAILED"));
  ASSERT_TRUE(parsed->start && parsed->end);
  EXPECT_EQ(*parsed->end - *parsed->start, Duration::seconds(7 * 86400));
  EXPECT_EQ(error_of(parse_sacct(words("--foo"), alice())),
            "sacct: unrecognized option '--foo'\n[1]");
  EXPECT_EQ(error_of(parse_sacct(words("-S foo"), alice())),
            "Invalid time specification (pos=0): foo\n[1]");
}

TEST(Sprio, AndSdiagTakeTheirOptions) {
  auto sprio = parse_sprio(words("-h -l -n -w -j 12 -u alice"), alice());
  ASSERT_TRUE(sprio.has_value());
  EXPECT_TRUE(sprio->no_header && sprio->long_form && sprio->normalized && sprio->weights);
  auto sdiag = parse_sdiag(words("-r -t"), alice());
  ASSERT_TRUE(sdiag.has_value());
  EXPECT_TRUE(sdiag->reset);
  EXPECT_EQ(sdiag->sort, 't');
  auto version = parse_sdiag(words("--version"), alice());
  ASSERT_TRUE(version.has_value());
  EXPECT_EQ(version->show, Show::kVersion);
}

TEST(Scontrol, ShowsByPrefixAndWithTheNameBehindEquals) {
  ClientContext context = alice({"SLURM_JOB_NODELIST=n[1-3]"});
  struct Case {
    std::string_view line;
    ScontrolVerb verb;
    std::string_view arguments;
  };
  for (const Case& one :
       {Case{"show job 12_3", ScontrolVerb::kShowJobs, "12_3"},
        Case{"show jobid 12", ScontrolVerb::kShowJobs, "12"},
        Case{"-o show nodes", ScontrolVerb::kShowNodes, ""},
        Case{"show part -o", ScontrolVerb::kShowPartitions, ""},
        Case{"sho hostlist a1,a2", ScontrolVerb::kShowHostList, "a1,a2"},
        Case{"show hostlistsorted b", ScontrolVerb::kShowHostListSorted, "b"},
        Case{"show hostname a,b", ScontrolVerb::kShowHostNames, "a,b"},
        Case{"show hostnames=a,b", ScontrolVerb::kShowHostNames, "a,b"},
        Case{"show hostnames", ScontrolVerb::kShowHostNames, "n[1-3]"},
        Case{"show lic", ScontrolVerb::kShowLicenses, ""},
        Case{"show config", ScontrolVerb::kShowConfig, ""},
        Case{"show reservation r", ScontrolVerb::kShowReservations, "r"},
        Case{"ping", ScontrolVerb::kPing, ""}, Case{"reconfig", ScontrolVerb::kReconfigure, ""},
        Case{"write batch_script 12 -", ScontrolVerb::kWriteBatchScript, "batch_script 12 -"}}) {
    auto parsed = parse_scontrol(words(one.line), context);
    ASSERT_TRUE(parsed.has_value()) << one.line << error_of(parsed);
    EXPECT_EQ(parsed->verb, one.verb) << one.line;
    EXPECT_EQ(join(parsed->arguments, " "), one.arguments) << one.line;
  }
  EXPECT_TRUE(parse_scontrol(words("show part -o"), context)->one_line);
}

TEST(Scontrol, ActsOnJobs) {
  struct Case {
    std::string_view line;
    Verb verb;
  };
  for (const Case& one : {Case{"hold 12,13", Verb::kHold}, Case{"release 12 13", Verb::kRelease},
                          Case{"requeue 12,13", Verb::kRequeue},
                          Case{"requeuehold State=SpecialExit 12,13", Verb::kRequeueHold},
                          Case{"top 12,13", Verb::kTop}}) {
    auto parsed = parse_scontrol(words(one.line), alice());
    ASSERT_TRUE(parsed.has_value()) << one.line;
    EXPECT_EQ(parsed->verb, ScontrolVerb::kAct) << one.line;
    EXPECT_EQ(parsed->action.verb, one.verb) << one.line;
    EXPECT_EQ(parsed->job_names, words("12 13")) << one.line;
    EXPECT_FALSE(parsed->action.admin_hold);
  }
  ClientContext root = alice();
  root.uid = 0;
  EXPECT_TRUE(parse_scontrol(words("hold 12"), root)->action.admin_hold);
  EXPECT_FALSE(parse_scontrol(words("uhold 12"), root)->action.admin_hold);
}

TEST(Scontrol, UpdatesJobsNodesAndPartitions) {
  auto job = parse_scontrol(
      words("update JobId=12 TimeLimit=30 nice=5 Partition=a,b Name=x Dependency=afterok:3"),
      alice());
  ASSERT_TRUE(job.has_value()) << error_of(job);
  EXPECT_EQ(job->action.verb, Verb::kUpdate);
  ASSERT_EQ(job->action.jobs.size(), 1U);
  auto change = from_json<WorkloadChanged>(job->action.change);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->time_limit, Duration::minutes(30));
  EXPECT_EQ(change->nice, 5);
  EXPECT_EQ(*change->partitions, words("a b"));
  EXPECT_EQ(change->name, "x");
  ASSERT_EQ(change->dependencies->size(), 1U);
  EXPECT_EQ(change->dependencies->front().kind, DependencyKind::kAfterOk);
  EXPECT_FALSE(change->comment.has_value());

  auto node = parse_scontrol(
      Words{"update", "State=DRAIN", "NodeName=n[1-2]", "Reason=NHC: bad disk"}, alice());
  ASSERT_TRUE(node.has_value()) << error_of(node);
  EXPECT_EQ(node->verb, ScontrolVerb::kUpdateNode);
  EXPECT_EQ(node->node.nodes, "n[1-2]");
  EXPECT_EQ(node->node.action, "drain");
  EXPECT_EQ(node->node.reason, "NHC: bad disk");

  auto partition = parse_scontrol(words("update PartitionName=gpu State=DOWN"), alice());
  ASSERT_TRUE(partition.has_value());
  EXPECT_EQ(partition->partition.partition, "gpu");
  EXPECT_EQ(partition->partition.state, PartitionState::kDown);
}

TEST(Scontrol, RefusesInSlurmsWords) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"foo", "invalid keyword: foo\n[1]"},
      {"show foo", "invalid entity:foo for keyword:show \n[1]"},
      {"show", "too few arguments for keyword:show\n[1]"},
      {"show hostnames", "scontrol: error: host list is empty\n[1]"},
      {"show job x", "scontrol_print_job error: Invalid job id specified\n[1]"},
      {"hold", "too few arguments for keyword:hold\n[1]"},
      {"requeue x", "Invalid job id specified for job x\n[1]"},
      {"update foo=1",
       "No valid entity in update command\nInput line must include \"NodeName\", "
       "\"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\"\n[1]"},
      {"update jobid=3 foo=1",
       "Update of this parameter is not supported: foo=1\nRequest aborted\n[1]"},
      {"update jobid=3 timelimit=banana", "scontrol: error: Invalid TimeLimit value\n[1]"},
      {"update jobid=3 priority=x", "scontrol: error: Invalid Priority value: x\n[1]"},
      {"update node=n1 state=drain",
       "You must specify a reason when DOWNING or DRAINING a node. Request denied\n[1]"}};
  for (const auto& [line, text] : cases)
    EXPECT_EQ(error_of(parse_scontrol(words(line), alice())), text) << line;
}

}  // namespace
}  // namespace tutti::slurm
