// What a trivial job costs on a node: printed, not asserted.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/unit/agent/agent_fixture.h"

namespace tutti::agent {
namespace {

double cpu_ms(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

TEST_F(AgentTest, CostOfTrivialJobs) {
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::duration d) {
    return std::chrono::duration<double, std::milli>(d).count();
  };
  start_agent();
  constexpr std::uint32_t kJobs = 100;
  std::vector<double> ready, first_line, whole;
  const double own = cpu_ms(RUSAGE_SELF);
  const double children = cpu_ms(RUSAGE_CHILDREN);
  std::uint64_t ranks = 0;
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    const auto facts = job(1000 + i, 1000 + i);
    const auto begin = Clock::now();
    prepare(facts, batch(": >ran\n"));
    const auto mine = [&](const auto& m) { return m.key.gang == facts.gang; };
    until("ready", [&] { return find<from_agent::Ready>(mine) != nullptr; });
    ready.push_back(ms(Clock::now() - begin));
    go(facts);
    until("ended", [&] { return find<from_agent::StepEnded>(mine) != nullptr; });
    first_line.push_back(ms(Clock::now() - begin));
    ranks += find<from_agent::StepEnded>(mine)->usage.cpu_ms;
    end(facts);
    until("clean", [&] {
      return find<from_agent::Clean>([&](const auto& m) { return m.gang == facts.gang; }) !=
             nullptr;
    });
    whole.push_back(ms(Clock::now() - begin));
  }
  EXPECT_TRUE(std::filesystem::exists(work_dir() + "/ran"));
  const auto median = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  std::printf(
      "agent, %u trivial batch jobs: median ms prepare->ready %.2f, ->ended %.2f, ->clean %.2f; "
      "CPU ms a job: agent (with this test) %.2f, supervisors and ranks %.2f, of which ranks about "
      "%.2f\n",
      kJobs, median(ready), median(first_line), median(whole), (cpu_ms(RUSAGE_SELF) - own) / kJobs,
      (cpu_ms(RUSAGE_CHILDREN) - children) / kJobs, static_cast<double>(ranks) / kJobs);
}

}  // namespace
}  // namespace tutti::agent
