// The tables of the small grammars: times, sizes, node counts, generic resources, signals.
#include <gtest/gtest.h>

#include <csignal>
#include <random>

#include "base/duration_text.h"
#include "base/gres_text.h"
#include "base/signal_text.h"
#include "base/size_text.h"

namespace tutti {
namespace {
constexpr std::int64_t kInfinite = -1;

TEST(DurationText, TimeLimitsAsSbatchReadsThem) {
  struct Case {
    std::string_view text;
    std::int64_t minutes;
  };
  for (auto [text, minutes] :
       {Case{"30", 30}, Case{"0:30", 1}, Case{"1:00", 1}, Case{"1:01", 2}, Case{"2:00:00", 120},
        Case{"0:90", 2}, Case{"5-0", 7200}, Case{"1-2:30", 1590}, Case{"1-0:0:1", 1441},
        Case{"7-00:00:00", 10080}, Case{"UNLIMITED", kInfinite}, Case{"infinite", kInfinite},
        Case{"-1", kInfinite}, Case{"0", kInfinite}}) {
    auto limit = parse_time_limit(text);
    ASSERT_TRUE(limit) << text;
    EXPECT_EQ(limit->is_infinite() ? kInfinite : limit->whole_seconds() / 60, minutes) << text;
  }
  for (std::string_view bad : {"banana", "", ":", "1:", ":1", "1:2:3:4", "1-", "-2", "1-2-3",
                               "1-2:3:4:5", "1.5", "1h", " 1", "1:-2", "99999999999999999999"}) {
    auto limit = parse_time_limit(bad);
    ASSERT_FALSE(limit) << bad;
    EXPECT_EQ(limit.error().reason, "invalid_time");
    EXPECT_NE(limit.error().message.find("expected minutes"), std::string::npos);
  }
}

TEST(DurationText, PrintsBothForms) {
  auto both = [](std::int64_t s) {
    return format_duration(Duration::seconds(s)) + " " +
           format_duration_short(Duration::seconds(s));
  };
  EXPECT_EQ(both(37), "00:00:37 0:37");
  EXPECT_EQ(both(7163), "01:59:23 1:59:23");
  EXPECT_EQ(both(604800), "7-00:00:00 7-00:00:00");
  EXPECT_EQ(both(600), "00:10:00 10:00");
  EXPECT_EQ(both(-5), "00:00:00 0:00");
  EXPECT_EQ(format_duration(Duration::infinite()), "UNLIMITED");
  std::mt19937 random(11);
  for (int i = 0; i < 1000; ++i) {
    auto duration = Duration::seconds(random() % 10'000'000);
    EXPECT_EQ(parse_duration(format_duration(duration)).value(), duration) << "seed 11";
  }
}

TEST(SizeText, MemoryAsSbatchReadsIt) {
  struct Case {
    std::string_view text;
    std::uint64_t mib;
  };
  for (auto [text, mib] :
       {Case{"500", 500}, Case{"64G", 65536}, Case{"1GB", 1024}, Case{"1GiB", 1024},
        Case{"2t", 2097152}, Case{"1K", 1}, Case{"1025K", 2}, Case{"0", 0}, Case{"4000M", 4000},
        Case{"1024P", std::uint64_t{1} << 40}}) {
    auto size = parse_memory_mib(text);
    ASSERT_TRUE(size) << text;
    EXPECT_EQ(*size, mib) << text;
  }
  for (std::string_view bad :
       {"lots", "", "G", "1.5T", "-1", "1X", "1Gx", "1 G", "1GG", "99999999999999999999",
        "18014398509481985T", "1025P", "4294962949672952k"})
    EXPECT_EQ(parse_memory_mib(bad).error().reason, "invalid_memory") << bad;
}

TEST(SizeText, MemoryAsSlurmPrintsIt) {
  EXPECT_EQ(format_memory_mib(1000), "1000M");
  EXPECT_EQ(format_memory_mib(65536), "64G");
  EXPECT_EQ(format_memory_mib(1'000'000), "1000000M");
  EXPECT_EQ(format_memory_mib(0), "0");
  EXPECT_EQ(format_memory_mib(2000, MemoryStyle::kRounded), "1.95G");
  EXPECT_EQ(format_memory_mib(65536, MemoryStyle::kNoConvert), "65536M");
  EXPECT_EQ(format_memory_in(1536, 'G'), "1.50G");
  EXPECT_EQ(format_memory_in(2, 'k'), "2048K");
  std::mt19937_64 random(12);
  for (int i = 0; i < 1000; ++i) {
    std::uint64_t mib = random() % (1u << (random() % 31)) + 1;
    EXPECT_EQ(parse_memory_mib(format_memory_mib(mib)).value(), mib) << "seed 12";
  }
}

TEST(SizeText, NodeCounts) {
  EXPECT_EQ(parse_node_count("4").value(), (NodeCount{4, 4}));
  EXPECT_EQ(parse_node_count("2-8").value(), (NodeCount{2, 8}));
  EXPECT_EQ(parse_node_count("2k").value(), (NodeCount{2048, 2048}));
  EXPECT_EQ(parse_node_count("2-1").error().message,
            "Maximum node count 1 is less than minimum node count 2");
  for (std::string_view bad : {"0", "", "-", "1-", "-1", "x", "1x", "4m-", "9999m"})
    EXPECT_EQ(parse_node_count(bad).error().reason, "invalid_node_count") << bad;
}

TEST(GresText, ReadsWhatSlurmWrites) {
  struct Case {
    std::string_view text, canonical;
  };
  for (auto [text, canonical] :
       {Case{"gpu", "gpu:1"}, Case{"gpu:4", "gpu:4"}, Case{"gpu:h100:4", "gpu:h100:4"},
        Case{"gpu:h100", "gpu:h100:1"}, Case{"gpu:rtxpro6000:8(S:0-1)", "gpu:rtxpro6000:8"},
        Case{"gpu:a:2(IDX:0,3),shard:16", "gpu:a:2,shard:16"}, Case{"none", ""}, Case{"", ""},
        Case{"gres:gpu:rtxpro6000:4", "gpu:rtxpro6000:4"}, Case{"gres/gpu=4", "gpu:4"},
        Case{"gres/gpu:h100=2", "gpu:h100:2"}, Case{"mps:2k", "mps:2048"},
        Case{"gpu:1g.10gb:2", "gpu:1g.10gb:2"}, Case{"gpu:0", "gpu:0"}}) {
    auto list = parse_gres_list(text);
    ASSERT_TRUE(list) << text << ": " << list.error().message;
    EXPECT_EQ(to_string(*list), canonical) << text;
  }
  for (std::string_view bad :
       {":", "gpu:", "gpu::4", "gpu:h100:x", "gpu:a:1:2", "gpu,,gpu", "gpu 4", "gpu:4(S:0", ",",
        "gpu:-1:2:3", "gpu:a:", "gres", "gres:gres:1", "4"})
    EXPECT_EQ(parse_gres_list(bad).error().reason, "invalid_gres") << bad;
}

TEST(GresText, GpuListsHaveNoName) {
  EXPECT_EQ(parse_gpu_list("h100:2,a100:1").value(),
            (std::vector<Gres>{{"gpu", "h100", 2}, {"gpu", "a100", 1}}));
  EXPECT_EQ(parse_gpu_list("4").value(), (std::vector<Gres>{{"gpu", "", 4}}));
  EXPECT_EQ(parse_gpu_list("h100").value(), (std::vector<Gres>{{"gpu", "h100", 1}}));
  for (std::string_view bad : {"h100:x", "a:b:1", ":2", "2:", "1,"})
    EXPECT_FALSE(parse_gpu_list(bad)) << bad;
}

TEST(SignalText, NamesAndNumbersBothWays) {
  EXPECT_EQ(parse_signal("USR1").value(), SIGUSR1);
  EXPECT_EQ(parse_signal("sigterm").value(), SIGTERM);
  EXPECT_EQ(parse_signal("9").value(), SIGKILL);
  for (int signal = 1; signal <= 64; ++signal)
    EXPECT_EQ(parse_signal(signal_name(signal)).value(), signal);
  for (std::string_view bad : {"0", "65", "-9", "", "SIG", "SIGSIGTERM", "TERMINATE"})
    EXPECT_EQ(parse_signal(bad).error().reason, "invalid_signal") << bad;
}

TEST(SignalText, WarningsBeforeTheEnd) {
  struct Case {
    std::string_view text, canonical;
  };
  for (auto [text, canonical] :
       {Case{"USR2@90", "USR2@90"}, Case{"B:USR2@30", "B:USR2@30"}, Case{"10", "USR1@60"},
        Case{"RB:SIGINT", "RB:INT@60"}, Case{"br:int@0", "RB:INT@0"},
        Case{"R:TERM@65535", "R:TERM@65535"}}) {
    auto spec = parse_signal_spec(text);
    ASSERT_TRUE(spec) << text;
    EXPECT_EQ(to_string(*spec), canonical) << text;
    EXPECT_EQ(parse_signal_spec(to_string(*spec)).value(), *spec);
  }
  for (std::string_view bad :
       {"", "X:USR1", "BB:USR1", "USR1@", "USR1@65536", "USR1@-1", "@5", "B:"})
    EXPECT_EQ(parse_signal_spec(bad).error().reason, "invalid_signal") << bad;
}

TEST(SignalText, ExitStatuses) {
  EXPECT_EQ(to_string(WaitStatus::from_wait(3 << 8)), "3:0");
  EXPECT_EQ(to_string(WaitStatus::from_wait(SIGKILL)), "0:9");
  EXPECT_EQ(WaitStatus::from_wait(SIGTERM).shell_code(), 143);
  EXPECT_FALSE(WaitStatus::from_wait(SIGTERM).success());
  EXPECT_EQ(parse_wait_status("1:15").value(), (WaitStatus{1, 15}));
  EXPECT_FALSE(parse_wait_status("256:0"));
  EXPECT_FALSE(parse_wait_status("1:"));
}
}  // namespace
}  // namespace tutti
