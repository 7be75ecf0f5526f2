#include "base/archive.h"
#include "base/enum_names.h"
#include "simulator/report.h"

namespace tutti::simulator {

namespace {
struct JsonReport {
  std::string trace, cluster, verdict;
  std::vector<Metrics> profiles;
};
template <class A>
void describe(A& a, JsonReport& x) {
  a("trace", x.trace);
  a("cluster", x.cluster);
  a("verdict", x.verdict);
  a("profiles", x.profiles);
}
}  // namespace

std::string render_json(const Comparison& comparison) {
  return to_json(
      JsonReport{comparison.trace, comparison.cluster, verdict(comparison), comparison.profiles});
}

}  // namespace tutti::simulator
