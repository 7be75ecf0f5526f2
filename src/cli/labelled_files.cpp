// srun --label --output=FILE: the lines come here, and are written to files with their labels.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "agent/output_pattern.h"
#include "agent/process.h"
#include "cli/labelled_files.h"
#include "cli/slurm_context.h"

namespace tutti::cli {

namespace {

struct Writer {
  LabelledFiles files;
  JobFacts job;
  StepReply reply;
  std::map<std::string, agent::Descriptor> open_files;

  // The name of the rank's file, by the patterns of srun.
  std::string path_of(const StreamTarget& target, std::uint32_t rank) const {
    StepOrder step;
    step.step = reply.step;
    std::string node;
    for (std::size_t i = 0; i < reply.ranks.size(); ++i)
      for (std::uint32_t one : reply.ranks[i])
        if (one == rank) node = reply.nodes[i], step.node_id = static_cast<std::uint32_t>(i);
    return agent::absolute_path(files.work_dir, agent::expand_pattern(target.path, {&job, &step, node, rank}));
  }

  void write(int fd, std::uint32_t rank, std::string_view text) {
    const StreamTarget& target = fd == 2 && files.err.kind == StreamKind::kFile ? files.err : files.out;
    if (target.kind != StreamKind::kFile) return fd == 2 ? print_err(text) : print_out(text);
    std::string path = path_of(target, rank);
    auto found = open_files.find(path);
    if (found == open_files.end()) {
      int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (files.append ? O_APPEND : O_TRUNC);
      agent::Descriptor file(open(path.c_str(), flags, 0666));
      if (!file) print_err(fmt::format("srun: error: Could not open stdout file {}: {}\n", path, std::strerror(errno)));
      found = open_files.emplace(path, std::move(file)).first;
    }
    while (found->second && !text.empty()) {
      ssize_t n = ::write(found->second.get(), text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
};

}  // namespace

LabelledFiles take_files(StepOrder& order) {
  LabelledFiles files{order.out, order.err, order.work_dir, order.append};
  const StreamTarget attached{StreamKind::kAttached, "", {}};
  if (order.out.kind == StreamKind::kFile) {
    // Without a target of its own stderr goes where stdout goes.
    if (order.err.kind != StreamKind::kFile) order.err = attached;
    order.out = attached;
  }
  if (order.err.kind == StreamKind::kFile) order.err = attached;
  return files;
}

StepOutput::WriteRank labelled_writer(const LabelledFiles& files, GangId job, const StepReply& reply) {
  auto writer = std::make_shared<Writer>();
  writer->files = files;
  writer->job.gang = job;
  writer->job.workload = WorkloadId(job.value());
  writer->reply = reply;
  return [writer](int fd, std::uint32_t rank, std::string_view text) { writer->write(fd, rank, text); };
}

}  // namespace tutti::cli
