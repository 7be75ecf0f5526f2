#include "simulator/trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "simulator/gunzip.h"

namespace tutti::simulator {
namespace {

std::uint64_t count_of(const Trace& trace, TraceProblemKind kind) {
  auto found = trace.problems.kinds.find(kind);
  return found == trace.problems.kinds.end() ? 0 : found->second.count;
}

// Empty where the public traces are not at hand.
std::string shared_trace(const std::string& name) {
  const char* shared = std::getenv("TUTTI_SHARED");
  std::ifstream file(std::string(shared ? shared : "../shared") + "/traces/" + name,
                     std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (bytes.str().empty()) return {};
  auto text = gunzip(bytes.str());
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

TEST(Swf, TakesWhatWasAskedForBeforeWhatWasGiven) {
  Trace trace = read_swf(
      "; Computer: IBM SP2\n; MaxProcs: 100\n; Note: more: colons\n;\n"
      "    1   10 964980  97225   56     -1    -1   64 210000    -1  1   7   2  -1 3 -1 -1 -1\n"
      "    2   20      5     30    8     -1  2048   -1     -1  4096  5  -1  -1  -1 -1 -1 -1 -1\n");
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.header.at("MaxProcs"), "100");
  EXPECT_EQ(trace.header.at("Note"), "more: colons");
  const TraceJob& first = trace.jobs[0];
  EXPECT_EQ(first.number, 1u);
  EXPECT_EQ(first.line, 5u);
  EXPECT_EQ(first.submit, Instant::from_ms(10'000));
  EXPECT_EQ(first.run, Duration::seconds(97225));
  EXPECT_EQ(first.limit, Duration::seconds(210000));
  EXPECT_EQ(first.tasks, 64u);
  EXPECT_EQ(first.cpus_milli, 1000u);
  EXPECT_EQ(trace.word(first.user), "user7");
  EXPECT_EQ(trace.word(first.partition), "queue3");
  EXPECT_EQ(first.end, TraceEnd::kCompleted);
  const TraceJob& second = trace.jobs[1];
  EXPECT_EQ(second.tasks, 8u);
  EXPECT_TRUE(second.limit.is_infinite());
  EXPECT_EQ(second.memory_mib, 4u);
  EXPECT_EQ(second.user, 0u);
  EXPECT_EQ(second.end, TraceEnd::kCancelled);
  EXPECT_TRUE(trace.problems.kinds.empty());
}

TEST(Swf, CountsAndListsWhatIsWrongByLine) {
  std::string text;
  for (int i = 1; i <= 12; ++i) text += std::to_string(i) + " 5 0 -1 1 -1 -1 1 10 -1\n";
  text +=
      "20 -3 0 10 1 -1 -1 1 10 -1\n"  // 13
      "21 5 0 10 -1 -1 -1 0 10 -1\n"  // 14
      "22 5 0 ten 1 -1 -1 1 10 -1\n"  // 15
      "23 5 0 10\n"                   // 16
      "24 5 0 10 1 -1 -1 1 10 -1\n"   // 17: good
      "24 6 0 10 1 -1 -1 1 10 -1\n"   // 18
      "25 4 0 50 1 -1 -1 1 10 -1\n";  // 19: early, and over its limit
  Trace trace = read_swf(text);
  EXPECT_EQ(count_of(trace, TraceProblemKind::kNeverRan), 12u);
  EXPECT_EQ(trace.problems.kinds.at(TraceProblemKind::kNeverRan).first.size(), 10u);
  EXPECT_EQ(trace.problems.kinds.at(TraceProblemKind::kNeverRan).first[9].line, 10u);
  EXPECT_EQ(count_of(trace, TraceProblemKind::kNegativeTime), 1u);
  EXPECT_EQ(trace.problems.kinds.at(TraceProblemKind::kNothingAsked).first[0].line, 14u);
  EXPECT_EQ(trace.problems.kinds.at(TraceProblemKind::kNotANumber).first[0].text,
            "field 4 (run time) is \"ten\"");
  EXPECT_EQ(trace.problems.kinds.at(TraceProblemKind::kMissingField).first[0].text,
            "4 fields, no processors allocated");
  EXPECT_EQ(count_of(trace, TraceProblemKind::kNumberTwice), 1u);
  EXPECT_EQ(count_of(trace, TraceProblemKind::kOverLimit), 1u);
  EXPECT_EQ(count_of(trace, TraceProblemKind::kNotInOrder), 1u);
  EXPECT_EQ(trace.problems.dropped(), 17u);
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].number, 25u);
  EXPECT_EQ(trace.jobs[0].run, Duration::seconds(10));
}

TEST(Swf, KthHasTheJobsOfThePublishedTable) {
  std::string text = shared_trace("pwa-swf/KTH-SP2-1996-2.swf.gz");
  if (text.empty()) GTEST_SKIP() << "TUTTI_SHARED has no public traces";
  auto trace = read_trace(text, "kth.swf");
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_EQ(trace->jobs.size(), 28'481u);
  EXPECT_EQ(trace->header.at("MaxProcs"), "100");
}

constexpr std::string_view kSacct =
    "JobID|JobName|User|Account|Partition|Submit|Start|End|ElapsedRaw|Timelimit|State|NNodes|"
    "NCPUS|AllocTRES\n"
    "10|train|ada|nlp|gpu|2024-03-01T10:00:00|2024-03-01T10:00:05|2024-03-01T11:00:05|3600|"
    "1-00:00:00|COMPLETED|2|32|billing=32,cpu=32,gres/gpu:h100=16,gres/gpu=16,mem=64G,node=2\n"
    "10.batch|batch||nlp||2024-03-01T10:00:05|2024-03-01T10:00:05|2024-03-01T11:00:05|3600||"
    "COMPLETED|1|16|cpu=16\n"
    "11_4|\"a, b\"|bob|cv|cpu|2024-03-01T10:00:01|Unknown|Unknown|0|UNLIMITED|"
    "CANCELLED by 0|1|4|\n"
    "11_5|x|bob|cv|cpu|2024-03-01T10:00:01|2024-03-01T10:00:02|2024-03-01T10:02:03|121|"
    "00:01:00|TIMEOUT|1|4|cpu=4,node=1\n"
    "12|x|bob|cv|cpu|2024-03-01T10:00:03+01:00|2024-03-01T10:00:02|2024-03-01T10:02:03|121|"
    "00:01:00|TIMEOUT|1|4|cpu=4,node=1\n";

TEST(Sacct, ReadsJobsAndPassesOverSteps) {
  auto trace = read_trace(kSacct, "jobs.txt");
  ASSERT_TRUE(trace) << to_string(trace.error());
  ASSERT_EQ(trace->jobs.size(), 2u);
  const TraceJob& job = trace->jobs[0];
  EXPECT_EQ(job.number, 10u);
  EXPECT_EQ(job.submit, Instant::from_ms(1'709'287'200'000));
  EXPECT_EQ(job.run, Duration::seconds(3600));
  EXPECT_EQ(job.limit, Duration::seconds(86'400));
  EXPECT_EQ(job.nodes, 2u);
  EXPECT_EQ(job.tasks, 2u);
  EXPECT_EQ(job.cpus_milli, 16'000u);
  EXPECT_EQ(job.memory_mib, 32'768u);
  EXPECT_EQ(job.gpus, 16u);
  EXPECT_EQ(job.gpus_per_node, 8u);
  EXPECT_EQ(trace->word(job.gpu_types), "h100");
  EXPECT_EQ(trace->word(job.user), "ada");
  const TraceJob& element = trace->jobs[1];
  EXPECT_EQ(element.number, (11u << 24) + 6u);
  // A little over the limit is how Slurm ends a job at its limit.
  EXPECT_EQ(element.run, Duration::seconds(60));
  EXPECT_EQ(element.end, TraceEnd::kFailed);
  EXPECT_EQ(count_of(*trace, TraceProblemKind::kNeverRan), 1u);
  EXPECT_EQ(count_of(*trace, TraceProblemKind::kMixedTimeZones), 1u);
  EXPECT_EQ(count_of(*trace, TraceProblemKind::kOverLimit), 0u);
}

TEST(Sacct, NamesAllColumnsThatAreMissing) {
  auto trace = read_trace("JobID|State\n1|COMPLETED\n", "jobs.txt");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("no column Submit, Elapsed, ReqTRES"), std::string::npos)
      << trace.error().message;
}

TEST(Csv, AMappingOfOnesOwn) {
  auto mapping = parse_csv_mapping(
      "number=id submit=t:ms run=d:min gpus=g cpus=c memory=m:gib gpu_share=s:percent");
  ASSERT_TRUE(mapping) << mapping.error().message;
  auto trace = read_csv(
      "id,t,d,g,c,m,s,other\n7,1500,2,1,4,1.5,50,x\n8,2500,-1,1,4,1,50,x\n"
      "9,,1,1,1,1,1,x\n10,1,1,\"1\",2,1,100,\"a \"\"b\"\", c\"\n",
      *mapping);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->jobs.size(), 2u);
  const TraceJob& job = trace->jobs[1];
  EXPECT_EQ(job.number, 7u);
  EXPECT_EQ(job.submit, Instant::from_ms(1500));
  EXPECT_EQ(job.run, Duration::seconds(120));
  EXPECT_EQ(job.cpus_milli, 4000u);
  EXPECT_EQ(job.memory_mib, 1536u);
  EXPECT_EQ(job.gpu_permille, 500u);
  EXPECT_EQ(trace->jobs[0].number, 10u);
  EXPECT_EQ(count_of(*trace, TraceProblemKind::kNegativeTime), 1u);
  EXPECT_EQ(count_of(*trace, TraceProblemKind::kMissingField), 1u);
}

TEST(Csv, SaysWhatIsWrongWithAMapping) {
  auto message = [](std::string_view text) {
    auto mapping = parse_csv_mapping(text);
    return mapping ? "" : mapping.error().message;
  };
  EXPECT_EQ(message("submti=a"), "\"submti\": no field of a job; did you mean \"submit\"?");
  EXPECT_EQ(message("submit=a:weeks"),
            "\"weeks\": no unit of submit; there are s, ms, us, min, h, iso");
  EXPECT_EQ(message("gpus=a"), "the mapping has no submit=COLUMN");
  EXPECT_EQ(message("submit=a submit=b"), "field \"submit\" is mapped twice");
  EXPECT_EQ(message("submit"), "\"submit\": expected FIELD=COLUMN[:UNIT]");
  auto trace = read_csv("a,b\n1,2\n", *parse_csv_mapping("submit=x run=y"));
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().message, "the header has no column x, y; it has a, b");
}

TEST(Trace, SaysWhatItCannotTell) {
  auto trace = read_trace("some,unknown,thing\n1,2,3\n", "my.csv");
  ASSERT_FALSE(trace);
  EXPECT_NE(to_string(trace.error()).find("--columns"), std::string::npos);
  EXPECT_FALSE(read_trace("", "empty.csv"));
}

struct PublicTrace {
  const char* file;
  const char* mapping;  // nullptr: told from the header
  std::size_t jobs;
  std::uint64_t dropped;
};

TEST(Trace, PublicTracesAreReadWhole) {
  const PublicTrace kTraces[] = {
      {"muri-philly/trace1.csv.gz", nullptr, 1494, 0},
      {"muri-philly/trace2.csv.gz", nullptr, 5755, 0},
      {"tiresias/60_job.csv.gz", nullptr, 60, 0},
      {"elasticflow-philly/philly_103959.csv.gz", nullptr, 876, 0},
      {"shockwave/120_0.2_5_100_40_25_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace.gz",
       "shockwave", 120, 0},
      {"batsim-medium-late/easy_out_jobs.csv.gz", nullptr, 801, 0},
  };
  for (const PublicTrace& known : kTraces) {
    std::string text = shared_trace(known.file);
    if (text.empty()) GTEST_SKIP() << "TUTTI_SHARED has no public traces";
    const CsvMapping* mapping = known.mapping ? find_ready_mapping(known.mapping) : nullptr;
    auto trace = read_trace(text, known.file, TraceFormat::kAuto, mapping);
    ASSERT_TRUE(trace) << to_string(trace.error());
    EXPECT_EQ(trace->jobs.size(), known.jobs) << known.file;
    EXPECT_EQ(trace->problems.dropped(), known.dropped) << known.file;
  }
}

TEST(Trace, OpenbPodsThatNeverRanAreListed) {
  std::string text = shared_trace("openb-2023/openb_pod_list_default.csv.gz");
  if (text.empty()) GTEST_SKIP() << "TUTTI_SHARED has no public traces";
  auto trace = read_trace(text, "openb");
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_EQ(trace->jobs.size() + trace->problems.dropped(), 8152u);
  EXPECT_EQ(trace->jobs[0].cpus_milli, 12'000u);
  EXPECT_EQ(trace->jobs[0].memory_mib, 16'384u);
}

TEST(Gunzip, SaysThatDataIsDamagedOrShort) {
  std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x57\x28\xcf\x2f\xca\x49\xe1\x02"
      "\x00\x2d\x3b\x08\xaf\x0c\x00\x00\x00",
      32);
  auto text = gunzip(packed);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "hello world\n");
  EXPECT_EQ(*gunzip(packed + packed), "hello world\nhello world\n");
  EXPECT_EQ(gunzip(packed.substr(0, 20)).error().code, ErrorCode::kCorrupt);
  packed[14] = '\x00';
  EXPECT_EQ(gunzip(packed).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(gunzip(std::string(), 10).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace tutti::simulator
