// Shared by the sources that read a cluster's configuration.
#pragma once

#include <map>
#include <span>

#include "base/gres_text.h"
#include "frontend/slurm/config_lines.h"

namespace tutti::slurm {

// What a known key does.
enum class KeyUse : std::uint8_t {
  kUsed,
  kQuiet,        // has no meaning here, and nothing is lost by that: paths, ports, log levels
  kUnsupported,  // would change what happens: one warning
};
struct KnownKey {
  std::string_view name;
  KeyUse use = KeyUse::kUsed;
};
std::span<const KnownKey> global_keys();
std::span<const KnownKey> node_keys();
std::span<const KnownKey> partition_keys();
std::span<const KnownKey> gres_keys();

struct ConfigReading {
  ClusterConfig& out;
  std::map<std::string, bool> warned;  // unsupported keys already told
  std::vector<std::string> gres_types;
  struct NodeSet {
    std::string name, features;
    std::vector<std::string> nodes;
  };
  std::vector<NodeSet> node_sets;
  std::vector<std::string> future_nodes;  // State=FUTURE: described, but not there yet
  // What slurm.conf says a node has, to be compared with gres.conf.
  struct WantedGres {
    std::vector<Gres> list;
    Span span;
  };
  std::map<std::string, WantedGres> wanted;

  void error(std::string_view code, const Span& span, std::string message);
  void warn(std::string_view code, const Span& span, std::string message);
  // The key in its own spelling; an unknown one is an error with the nearest known one, an
  // unsupported one a warning, once. nullptr when there is nothing to set.
  const KnownKey* look_up(std::span<const KnownKey> keys, const ConfigWord& word,
                          std::string_view where);
  // Numbers and words of a value; what is wrong is reported and nullopt given back.
  std::optional<std::uint32_t> number(const ConfigWord& word);
  std::optional<std::uint64_t> megabytes(const ConfigWord& word);
  std::optional<bool> yes_or_no(const ConfigWord& word);
  std::vector<std::string> hosts(const ConfigWord& word, std::string_view text);
};

void read_node_lines(ConfigReading& reading, const ConfigLines& lines);
void read_partition_lines(ConfigReading& reading, const ConfigLines& lines);
// Without lines there is no topology.
void read_topology_lines(ConfigReading& reading, const ConfigLines& lines);
void read_gres_lines(ConfigReading& reading, const ConfigLines& lines);
// OFF, CANCEL, REQUEUE or SUSPEND, and GANG beside it, which has no effect.
std::optional<ReclaimMode> preempt_mode(ConfigReading& reading, const ConfigWord& word);
void read_global_line(ConfigReading& reading, const ConfigLine& line);
// config_accounting.cpp; other keys are let pass.
void read_accounting_word(ConfigReading& reading, std::string_view key, const ConfigWord& word);
bool set_partition_accounting(ConfigReading& reading, std::string_view key, const ConfigWord& word,
                              PartitionSpec& partition);

}  // namespace tutti::slurm
