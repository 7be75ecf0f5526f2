// Tutti's own configuration file: which sections it has. Each section is read by a function of its
// own, declared in sections.h.
#include "frontend/config/sections.h"

namespace tutti::config {

namespace {

void read_default_queue(const YamlNode& node, Findings& findings, QueueSource& out) {
  if (!node.is_scalar() || node.text.empty())
    return findings.expected(node, "a queue's name", "default_queue");
  out.default_queue = node.text;
  note_place(out, findings, "", "default_queue", node.place);
}

struct Section {
  std::string_view key;
  void (*read)(const YamlNode& node, Findings& findings, QueueSource& out);
};
constexpr Section kSections[] = {
    {"default_queue", read_default_queue},
    {"queues", read_queues_section},
};

}  // namespace

bool QueueSource::usable() const {
  for (const Diagnostic& one : diagnostics)
    if (one.severity == Severity::kError) return false;
  return true;
}

Span QueueSource::place_of(const QueueProblem& problem) const {
  std::string key = problem.key;
  while (true) {
    if (auto found = places.find({problem.queue, key}); found != places.end()) return found->second;
    if (key.empty()) return {};
    const std::size_t dot = key.rfind('.');
    key = dot == key.npos ? "" : key.substr(0, dot);
  }
}

Diagnostic QueueSource::diagnostic(const QueueProblem& problem) const {
  return {problem.is_warning ? Severity::kWarning : Severity::kError, "config-queue", problem.text,
          place_of(problem)};
}

std::optional<std::vector<YamlNode>> read_documents(std::string_view text, const std::string& file,
                                                    QueueSource& out) {
  auto documents = read_yaml(text, file);
  if (documents) return std::move(*documents);
  const Error& error = documents.error();
  out.diagnostics.push_back({Severity::kError, "config-syntax", error.message, error.span});
  return std::nullopt;
}

QueueSource read_policy_file(std::string_view text, const std::string& file) {
  QueueSource out;
  auto documents = read_documents(text, file, out);
  if (!documents) return out;
  Findings findings(file);
  for (const YamlNode& root : *documents) {
    if (!root.is_map()) {
      findings.expected(root, "sections such as \"queues:\"", "the file");
      continue;
    }
    if (root.find("apiVersion")) {
      findings.error(root.place, "this is a Kubernetes manifest: `tutti apply -f` reads those");
      continue;
    }
    Keys keys(root, findings, "the file");
    for (const Section& section : kSections)
      if (const YamlNode* node = keys.take(section.key)) section.read(*node, findings, out);
    out.has_queues = out.has_queues || root.find("queues");
    keys.finish();
  }
  if (documents->empty())
    findings.error({1, 1}, "the file says nothing: expected \"queues:\" (a list; [] for none)");
  out.diagnostics = findings.take();
  return out;
}

}  // namespace tutti::config
