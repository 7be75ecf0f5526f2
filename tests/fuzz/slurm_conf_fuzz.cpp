// The input is slurm.conf and, after a line "----", gres.conf. Reading it ends; a configuration
// without errors is one that can be used.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "frontend/slurm/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kBetween = "\n----\n";
  std::size_t between = text.find(kBetween);
  auto config = tutti::slurm::read_cluster_config(
      "/etc/slurm.conf", [&](const std::string& path) -> tutti::Result<std::string> {
        if (path == "/etc/slurm.conf") return std::string(text.substr(0, between));
        if (path == "/etc/gres.conf" && between != text.npos)
          return std::string(text.substr(between + kBetween.size()));
        return tutti::fail(tutti::ErrorCode::kNotFound, path);
      });
  if (!config.usable()) return 0;
  std::set<std::string> names;
  for (const tutti::NodeSpec& node : config.spec.nodes) {
    TUTTI_CHECK(names.insert(node.name).second);
    TUTTI_CHECK(node.cpus >= 1 && node.memory_mib >= 1);
  }
  TUTTI_CHECK(!names.empty() && !config.spec.partitions.empty());
  for (const tutti::PartitionSpec& partition : config.spec.partitions)
    for (const std::string& name : partition.nodes) TUTTI_CHECK(names.contains(name));
  return 0;
}
