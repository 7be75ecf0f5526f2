// Queues as a text says them, in whatever language, with the place of every fact, so that what the
// controller finds wrong can be shown where it was written.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "frontend/config/yaml.h"
#include "model/queue_api.h"

namespace tutti::config {

struct QueueSource {
  std::vector<QueueSpec> queues;  // in the order of the text
  std::optional<std::string> default_queue;
  bool has_queues = false;              // the text speaks of queues at all
  std::vector<std::string> left_alone;  // objects of kinds that are no queues: "Job qwen-finetune"
  std::vector<Diagnostic> diagnostics;
  // By queue and key, as QueueProblem has them; "" as queue: the tree itself.
  std::map<std::pair<std::string, std::string>, Span> places;

  bool usable() const;  // no diagnostic is an error
  // The nearest place known: of the key, of what it lies in, of the queue.
  Span place_of(const QueueProblem& problem) const;
  Diagnostic diagnostic(const QueueProblem& problem) const;
};

// The documents of a YAML text; nullopt with the error noted where it is none.
std::optional<std::vector<YamlNode>> read_documents(std::string_view text, const std::string& file,
                                                    QueueSource& out);
// Tutti's own file. Sections: queues.cpp; how one is added: policy_file.cpp.
QueueSource read_policy_file(std::string_view text, const std::string& file);
// Kubernetes manifests: Kueue's ResourceFlavor, Cohort, ClusterQueue, LocalQueue, Volcano's Queue;
// objects of other kinds are listed in `left_alone`.
QueueSource read_manifests(std::string_view text, const std::string& file);
// What read_policy_file() would read as this tree.
std::string policy_text(const QueueTree& tree);

}  // namespace tutti::config
