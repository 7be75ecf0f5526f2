#include "agent/output_pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/rank_environment.h"
#include "base/text.h"

namespace tutti::agent {
namespace {

std::string padded(std::uint64_t number, unsigned width) {
  return fmt::format("{:0{}}", number, std::min(width, 10U));
}

// False for a letter that is no pattern.
bool append_value(std::string& out, char letter, unsigned width, const PatternValues& values) {
  const JobFacts& job = *values.job;
  const StepOrder& step = *values.step;
  switch (letter) {
    case 'j':
      out += padded(job.gang.value(), width);
      return true;
    case 'J':
      out += padded(job.gang.value(), width);
      if (step.step != kBatchStep) out += '.' + step_word(step.step);
      return true;
    case 'A':
      out += padded(job.array_index ? job.workload.value() : job.gang.value(), width);
      return true;
    case 'a':
      // What Slurm writes for a job that is no array: the "no value" of its protocol.
      out += padded(job.array_index.value_or(4294967294U), width);
      return true;
    case 's':
      out += step_word(step.step);
      return true;
    case 't':
      out += padded(values.rank, width);
      return true;
    case 'n':
      out += padded(step.node_id, width);
      return true;
    case 'N':
      out += values.node;
      return true;
    case 'x':
      out += job.name;
      return true;
    case 'u':
      out += job.user;
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string expand_pattern(std::string_view pattern, const PatternValues& values) {
  std::string out;
  if (pattern.find('\\') != std::string_view::npos) {
    std::copy_if(pattern.begin(), pattern.end(), std::back_inserter(out),
                 [](char c) { return c != '\\'; });
    return out;
  }
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '%') {
      out += pattern[i++];
      continue;
    }
    std::size_t end = i + 1;
    unsigned width = 0;
    while (end < pattern.size() && is_digit(pattern[end]) && end < i + 4) {
      width = width * 10 + static_cast<unsigned>(pattern[end++] - '0');
    }
    if (end < pattern.size() && pattern[end] == '%') {
      out += '%';
      i = end + 1;
    } else if (end < pattern.size() && append_value(out, pattern[end], width, values)) {
      i = end + 1;
    } else {
      out += pattern[i++];
    }
  }
  return out;
}

std::string absolute_path(std::string_view directory, std::string_view path) {
  if (path.starts_with('/') || directory.empty()) return std::string(path);
  std::string out(directory);
  if (!out.ends_with('/')) out += '/';
  return out.append(path);
}

}  // namespace tutti::agent
