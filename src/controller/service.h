// Service: the controller's threads. One owns the Core and gives it turns; one answers readers from
// the published picture. Inputs may come from any thread; queues are bounded.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "controller/core.h"
#include "controller/ports.h"
#include "controller/queries.h"
#include "journal/journal.h"

namespace tutti::controller {

struct ServiceOptions {
  About about;
  // Where this controller may be made to crash, and after how many passes by (tests only).
  CrashPoint crash_point = [](const char*) {};
};

class Service {
 public:
  Service(ServiceOptions options, journal::Journal journal, const Clock& clock, Users& users, Log& log);
  ~Service();

  // Recovers, takes `spec` into force and starts the threads. Errors: kCorrupt, kConflict...
  Status start(const std::optional<journal::Snapshot>& snapshot, std::uint64_t snapshot_sequence,
               const ClusterSpec& spec);
  // Stops taking calls, finishes the turn under way and ends the threads. Idempotent.
  void stop();

  void call(ApiCall call);                  // any path of model/api.h
  void agent_opened(std::shared_ptr<Link> link);
  void agent_message(std::shared_ptr<Link> link, std::string frame);
  void agent_closed(std::shared_ptr<Link> link);
  void client_opened(std::shared_ptr<Link> link, Caller caller, GangId gang);
  void client_message(std::shared_ptr<Link> link, std::string frame);
  void client_closed(std::shared_ptr<Link> link);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::controller
