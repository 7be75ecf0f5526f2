#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "agent/agent_impl.h"
#include "agent/rank_environment.h"
#include "agent/supervisor_link.h"
#include "base/text.h"

namespace tutti::agent {
namespace {

Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  if (error) return fail(ErrorCode::kUnavailable, directory + ": " + error.message());
  for (const auto& entry : entries) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Status Agent::Impl::adopt() {
  auto names = names_in(options_.directory + "/jobs");
  if (!names) return tl::unexpected(names.error());
  for (const auto& name : *names) adopt_gang(name);
  // Groups of jobs of which nothing else is left.
  for (const std::uint32_t job : cgroups_->jobs()) {
    if (gangs_.contains(GangId(job))) continue;
    log(fmt::format("job {}: removing what an earlier agent left", job));
    if (auto status = cgroups_->kill_all(job, "", KillOptions{}); !status) {
      log(to_string(status.error()));
    }
    if (auto status = cgroups_->remove_job(job); !status) log(to_string(status.error()));
  }
  return {};
}

void Agent::Impl::adopt_gang(const std::string& name) {
  const std::string directory = options_.directory + "/jobs/" + name;
  const auto number = parse_integer<std::uint32_t>(name);
  auto text = read_users_file(directory + "/gang.json");
  auto record =
      text ? from_json<GangRecord>(*text) : Result<GangRecord>(tl::unexpected(text.error()));
  auto names = names_in(directory);
  const bool has_batch =
      names && std::find(names->begin(), names->end(), "step_batch") != names->end();
  if (!number || !record || record->job.gang.value() != *number ||
      (record->has_batch && !has_batch)) {
    // Its agent died before it could say that it is ready; the group, if any, is removed later.
    log(fmt::format("{}: not completely prepared, removed", directory));
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
    return;
  }
  GangEntry& gang = gangs_[GangId(*number)];
  gang.record = std::move(*record);
  gang.directory = directory;
  gang.started = std::find(names->begin(), names->end(), "go") != names->end();
  gang.oom_seen = cgroups_->usage(*number).oom_kills;
  for (const auto& entry : *names) {
    if (entry.starts_with("step_")) adopt_step(gang, entry);
  }
}

void Agent::Impl::adopt_step(GangEntry& gang, const std::string& name) {
  const auto id = step_from_word(std::string_view(name).substr(5));
  if (!id) return;
  StepEntry& step = gang.steps[*id];
  step.id = *id;
  step.directory = gang.directory + "/" + name;
  if (auto control = connect_in_directory(step.directory, "control", SOCK_SEQPACKET)) {
    adopt_supervisor(gang, step, std::move(*control));
    if (step.pidfd) return;
  }
  // No supervisor: it has finished, or it is gone.
  auto text = read_users_file(step.directory + "/status.json");
  if (text) {
    if (auto status = from_json<StepStatus>(*text)) step.status = std::move(*status);
  }
  step.phase = StepPhase::kDone;
  struct stat spool{};
  step.attached = ::lstat((step.directory + "/output").c_str(), &spool) == 0;
  if (!step.status) {
    step.go_said = step.id != kBatchStep || gang.started;
    if (auto killed = cgroups_->kill_all(gang.id().value(), step_word(*id), KillOptions{});
        !killed) {
      log(to_string(killed.error()));
    }
    step.status = vanished_status(gang, step);
    step.status->output_size = step.attached ? static_cast<std::uint64_t>(spool.st_size) : 0;
  } else if (step.status->refusal) {
    forget_step(gang, *id);
    return;
  }
  step.size = step.status->output_size;
  step.taken = step.sent = std::min(step.status->output_taken, step.size);
  finish_step(gang, step);
}

void Agent::Impl::adopt_supervisor(GangEntry& gang, StepEntry& step, Descriptor control) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(control.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  // The directory is the user's, so this may be anybody's socket; a process of his is all it can
  // be, and all that we could harm.
  if (!rootless_ && peer.uid != gang.record.job.uid && peer.uid != ::geteuid()) return;
  step.pidfd = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
  if (!step.pidfd) return;
  step.supervisor = peer.pid;
  step.control = std::move(control);
  step.adopting = true;
  step.control_token = watch(step.control.get(), {WatchKind::kControl, gang.id(), step.id});
  step.pidfd_token = watch(step.pidfd.get(), {WatchKind::kPidfd, gang.id(), step.id});
  if (!adopt_until_) adopt_until_ = Clock::now() + std::chrono::seconds(2);
  const std::string word = step_word(step.id);
  if (cgroups_->procs_files(gang.id().value(), word).empty()) {
    auto status = cgroups_->create_job(gang.id().value(), {});
    if (status) status = cgroups_->attach(gang.id().value(), word, step.supervisor);
    if (!status) log(to_string(status.error()));
  }
}

}  // namespace tutti::agent
