// tutti queue, tutti apply: files are read here, trees are checked and kept by the controller.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <tuple>

#include "cli/api_client.h"
#include "cli/queue_command.h"
#include "cli/slurm_context.h"
#include "frontend/config/queue_source.h"

namespace tutti::cli {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{8} << 20;  // the reader says what is too much

int complain(const std::string& text) {
  print_err(fmt::format("tutti: {}\n", text));
  return 1;
}

Result<std::string> read_text(const std::string& file) {
  std::FILE* in = file == "-" ? stdin : std::fopen(file.c_str(), "rb");
  if (!in) return fail_errno(errno, file);
  std::string text;
  char piece[65536];
  std::size_t got = 0;
  while ((got = std::fread(piece, 1, sizeof piece, in)) > 0 && text.size() <= kMaxFileBytes)
    text.append(piece, got);
  const int error = std::ferror(in) ? errno : 0;
  if (in != stdin) std::fclose(in);
  if (error) return fail_errno(error, file);
  return text;
}

std::string_view word(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      break;
  }
  return "note";
}

std::size_t print_findings(std::vector<Diagnostic> findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.span.line, a.span.column) < std::tie(b.span.line, b.span.column);
  });
  std::size_t errors = 0;
  for (const Diagnostic& one : findings) {
    errors += one.severity == Severity::kError;
    std::string at;
    if (one.span.line > 0) at = fmt::format("{}:{}:{}: ", one.span.file, one.span.line, one.span.column);
    print_err(fmt::format("{}{}: {}\n", at, word(one.severity), one.message));
  }
  return errors;
}

std::string changes(const QueuesReply& reply) {
  std::vector<std::string> parts;
  auto add = [&](const std::vector<std::string>& names, std::string_view what) {
    if (names.empty()) return;
    std::vector<std::string> some(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(names.size(), 8)));
    parts.push_back(fmt::format("{} {} ({}{})", names.size(), what, fmt::join(some, ", "), names.size() > 8 ? ", ..." : ""));
  };
  add(reply.added, "added");
  add(reply.changed, "changed");
  add(reply.removed, "removed");
  return parts.empty() ? "nothing changes" : fmt::format("{}", fmt::join(parts, ", "));
}

int send(ApiClient& api, const QueuesRequest& request, const config::QueueSource& source) {
  auto reply = api.post_as<QueuesReply>("/v1/queues", request);
  if (!reply) return complain(to_string(reply.error()));
  std::vector<Diagnostic> findings = source.diagnostics;
  for (const QueueProblem& problem : reply->problems) findings.push_back(source.diagnostic(problem));
  const std::size_t errors = print_findings(std::move(findings));
  if (errors > 0) return complain(fmt::format("{} error{}; the queues are as before", errors, errors == 1 ? "" : "s"));
  print_out(fmt::format("{}: {}\n", request.check_only ? "checked" : "queues in force", changes(*reply)));
  return 0;
}

std::optional<config::QueueSource> read_source(const QueueFileOptions& options) {
  auto text = read_text(options.file);
  if (!text) {
    complain(text.error().message);
    return std::nullopt;
  }
  const std::string name = options.file == "-" ? "(standard input)" : options.file;
  return options.manifests ? config::read_manifests(*text, name) : config::read_policy_file(*text, name);
}

std::string amount(const std::optional<std::uint64_t>& value, std::string_view none) {
  return value ? fmt::format("{}", *value) : std::string(none);
}

std::string state_text(const QueueSpec& queue) { return std::string(enum_name(queue.state)); }

void print_list(const QueuesView& view) {
  if (view.tree.queues.empty()) {
    print_out("no queues are configured: no quota applies (`tutti queue apply FILE`)\n");
    return;
  }
  print_out(fmt::format("{:<28} {:<12} {:>10} {:>10} {:>8} {:>8} {:>8} {:>7} {:>7}\n", "QUEUE", "RESOURCE", "USED", "NOMINAL", "BORROW", "LEND", "LIMIT", "RUN", "PENDING"));
  // Children below their parents.
  auto print = [&](auto&& self, const std::string& parent, std::string indent) -> void {
    for (std::size_t i = 0; i < view.tree.queues.size(); ++i) {
      const QueueSpec& queue = view.tree.queues[i];
      if (queue.parent != parent) continue;
      const QueueUse use = i < view.uses.size() ? view.uses[i] : QueueUse();
      std::string name = indent + queue.name;
      if (queue.name == view.tree.default_queue) name += " *";
      if (queue.state != QueueState::kOpen) name += " (" + state_text(queue) + ")";
      if (queue.quotas.empty())
        print_out(fmt::format("{:<28} {:<12} {:>10} {:>10} {:>8} {:>8} {:>8} {:>7} {:>7}\n", name, "-", "-", "-", "-", "-", "-", use.running, use.pending));
      for (std::size_t k = 0; k < queue.quotas.size(); ++k) {
        const QuotaSpec& quota = queue.quotas[k];
        const QuotaUse used = k < use.uses.size() ? use.uses[k] : QuotaUse();
        std::string nominal = amount(quota.nominal, "-");
        if (!quota.nominal && used.amount) nominal = fmt::format("({})", *used.amount);
        const bool first = k == 0;
        print_out(fmt::format("{:<28} {:<12} {:>10} {:>10} {:>8} {:>8} {:>8} {:>7} {:>7}\n", first ? name : "", quota.resource, used.used, nominal, amount(quota.borrowing_limit, "any"), amount(quota.lending_limit, "all"), amount(quota.limit, "-"), first ? fmt::format("{}", use.running) : "", first ? fmt::format("{}", use.pending) : ""));
      }
      self(self, queue.name, indent + "  ");
    }
  };
  print(print, "", "");
  print_out("NOMINAL in parentheses is the share by weight as it is now; * is the default queue.\n");
}

}  // namespace

bool check_queue_file(const QueueFileOptions& options) {
  auto source = read_source(options);
  if (!source) return false;
  if (source->usable()) return true;
  const std::size_t errors = print_findings(source->diagnostics);
  complain(fmt::format("{} error{} in {}; nothing was started", errors, errors == 1 ? "" : "s", options.file));
  return false;
}

int run_queue_file(const QueueFileOptions& options) {
  auto source = read_source(options);
  if (!source) return 1;
  if (!source->usable()) {
    const std::size_t errors = print_findings(source->diagnostics);
    return complain(fmt::format("{} error{}; the queues are as before", errors, errors == 1 ? "" : "s"));
  }
  if (!source->has_queues && !source->default_queue) {
    print_findings(source->diagnostics);
    return complain(fmt::format("{} says nothing about queues; the queues are as before", options.file));
  }
  QueuesRequest request;
  request.replace = !options.manifests && source->has_queues;
  request.queues = source->queues;
  request.default_queue = source->default_queue;
  request.check_only = options.check_only;
  // A file that replaces all says which queue is the default one, also by saying nothing.
  if (request.replace && !request.default_queue) request.default_queue = "";
  if (!options.state_dir.empty()) {
    ApiClient api(options.state_dir);
    return send(api, request, *source);
  }
  ApiClient api;
  return send(api, request, *source);
}

int run_queue_list(const QueueListOptions& options) {
  ApiClient api;
  auto text = api.get("/v1/queues");
  if (!text) return complain(to_string(text.error()));
  if (options.json && options.name.empty()) {
    print_out(*text + "\n");
    return 0;
  }
  auto view = from_own_json<QueuesView>(std::string(*text));
  if (!view) return complain(to_string(view.error()));
  if (options.name.empty()) {
    print_list(*view);
    return 0;
  }
  const QueueSpec* queue = view->tree.find(options.name);
  if (!queue) return complain(fmt::format("there is no queue {}", options.name));
  if (options.json) {
    print_out(to_json(*queue) + "\n");
    return 0;
  }
  QueueTree one;
  one.queues.push_back(*queue);
  print_out(config::policy_text(one));
  for (const QueueUse& use : view->uses) {
    if (use.queue != queue->name) continue;
    print_out(fmt::format("# {} running, {} pending\n", use.running, use.pending));
    for (const QuotaUse& quota : use.uses)
      print_out(fmt::format("# {}: {} used of {}\n", quota.resource, quota.used, amount(quota.amount, "any number")));
  }
  return 0;
}

int run_queue_delete(const std::vector<std::string>& names) {
  QueuesRequest request;
  request.remove = names;
  ApiClient api;
  return send(api, request, {});
}

int run_queue_export() {
  ApiClient api;
  auto view = api.get_as<QueuesView>("/v1/queues");
  if (!view) return complain(to_string(view.error()));
  print_out(config::policy_text(view->tree));
  return 0;
}

}  // namespace tutti::cli
