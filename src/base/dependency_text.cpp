#include "base/dependency_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tutti {

namespace {
constexpr std::string_view kKindNames[] = {"after",      "afterany",  "afterok",
                                           "afternotok", "aftercorr", "singleton"};

tl::unexpected<Error> bad_dependency(std::string_view text, std::string_view why) {
  return invalid(fmt::format("dependency {}: {}", quote(text), why), "invalid_dependency");
}

Result<DependencyWord> parse_kind(std::string_view text, std::string_view word) {
  for (std::size_t i = 0; i < std::size(kKindNames); ++i)
    if (equals_ci(word, kKindNames[i])) return static_cast<DependencyWord>(i);
  if (equals_ci(word, "expand") || equals_ci(word, "afterburstbuffer"))
    return bad_dependency(text, fmt::format("{} is not supported", lower(word)));
  std::string hint;
  if (auto close = closest_match(word, kKindNames))
    hint = fmt::format(" (did you mean {}?)", *close);
  return bad_dependency(
      text, fmt::format("expected {}, not {}{}", join(kKindNames, ", "), quote(word), hint));
}

// "12", "13_4", "13_*", and "5+10" after `after`.
Result<JobReference> parse_reference(std::string_view text, std::string_view piece,
                                     DependencyWord kind) {
  JobReference reference;
  std::string_view body = piece;
  if (auto delayed = split_once(body, '+')) {
    auto minutes = parse_integer<std::uint32_t>(delayed->second);
    if (kind != DependencyWord::kAfter || !minutes)
      return bad_dependency(text, fmt::format("{}: +MINUTES goes with after alone", quote(piece)));
    reference.minutes = *minutes;
    body = delayed->first;
  }
  if (auto tasked = split_once(body, '_')) {
    if (tasked->second != "*") {
      reference.task = parse_integer<std::uint32_t>(tasked->second);
      if (!reference.task)
        return bad_dependency(text,
                              fmt::format("expected a task index after _ in {}", quote(piece)));
    }
    body = tasked->first;
  }
  auto job = parse_integer<std::uint32_t>(body);
  if (!job || *job == 0)
    return bad_dependency(text, fmt::format("expected a job id, not {}", quote(piece)));
  reference.job = *job;
  return reference;
}

Result<DependencyTerm> parse_dependency(std::string_view text, std::string_view piece) {
  DependencyTerm dependency;
  std::vector<std::string_view> fields = split(piece, ':');
  // A list of job ids without a kind: how Slurm 1 wrote afterany.
  bool bare = !fields[0].empty() && is_digit(fields[0][0]);
  if (!bare) {
    auto kind = parse_kind(text, fields[0]);
    if (!kind) return tl::unexpected<Error>(kind.error());
    dependency.kind = *kind;
    fields.erase(fields.begin());
  }
  if (dependency.kind == DependencyWord::kSingleton) {
    if (!fields.empty()) return bad_dependency(text, "singleton takes no job id");
    return dependency;
  }
  if (fields.empty())
    return bad_dependency(text, fmt::format("expected :JOBID after {}", quote(piece)));
  for (std::string_view field : fields) {
    auto reference = parse_reference(text, field, dependency.kind);
    if (!reference) return tl::unexpected<Error>(reference.error());
    dependency.jobs.push_back(*reference);
  }
  return dependency;
}
}  // namespace

Result<DependencyList> parse_dependencies(std::string_view text) {
  DependencyList list;
  list.any = text.find('?') != std::string_view::npos;
  if (list.any && text.find(',') != std::string_view::npos)
    return bad_dependency(text, "either ',' (all) or '?' (any) in one list, not both");
  for (std::string_view piece : split(text, list.any ? '?' : ',')) {
    auto dependency = parse_dependency(text, trim(piece));
    if (!dependency) return tl::unexpected<Error>(dependency.error());
    list.dependencies.push_back(std::move(*dependency));
  }
  return list;
}

std::string_view dependency_word_name(DependencyWord kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::string to_string(const DependencyTerm& dependency) {
  std::string out(dependency_word_name(dependency.kind));
  for (const JobReference& job : dependency.jobs) {
    out += fmt::format(":{}", job.job);
    if (job.task) out += fmt::format("_{}", *job.task);
    if (job.minutes) out += fmt::format("+{}", job.minutes);
  }
  return out;
}

std::string to_string(const DependencyList& list) {
  std::string out;
  for (const DependencyTerm& dependency : list.dependencies) {
    if (!out.empty()) out += list.any ? '?' : ',';
    out += to_string(dependency);
  }
  return out;
}

}  // namespace tutti
