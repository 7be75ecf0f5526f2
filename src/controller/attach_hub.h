// AttachHub: the clients that follow gangs (srun, salloc, tutti run), and the output on its way to
// them. It relays; the spools of the nodes keep output until a client says it has it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "controller/ports.h"
#include "model/attach_protocol.h"

namespace tutti::controller {

class AttachHub {
 public:
  // A client that vanished without saying so, and what depended on it.
  struct Gone {
    Instant deadline;
    GangId gang;
    bool owns_gang = false;     // the allocation lived for this client
    std::vector<StepId> steps;  // it followed
    std::uint32_t uid = 0;
  };
  struct Client {
    std::shared_ptr<Link> link;
    Caller caller;
    GangId gang;  // as asked for; a workload's number until its gang exists
    bool owns_gang = false;
    std::map<StepId, std::vector<std::uint64_t>> forwarded;  // per followed step and node
    // Ends that wait until the output before them has been forwarded.
    std::map<StepId, std::pair<to_client::StepEnded, std::vector<std::uint64_t>>> ended;
  };

  void open(std::shared_ptr<Link> link, Caller caller, GangId gang);
  // The gang lives for this client; it is not missed any more.
  void own(Client& client);
  Client* find(const Link* link);
  // The client follows a step from these positions; forgets that an earlier client of it is gone.
  void follow(Client& client, StepId step, std::vector<std::uint64_t> have, std::size_t nodes);
  // Left in order: nothing is to be ended on its account.
  void leave(const Link* link);
  // The connection broke. It counts as gone at `deadline` unless it comes back.
  void lost(const Link* link, Instant deadline);
  // Somebody should be there (a controller restarted, a session was submitted) and counts as gone
  // at its deadline unless he comes.
  void expect(Gone who) { gone_.push_back(std::move(who)); }
  // Those whose deadline has passed; they stay until forget_gone() of the same time.
  std::vector<Gone> gone(Instant now) const;
  void forget_gone(Instant now);
  Instant next_deadline() const;
  std::size_t size() const { return clients_.size(); }

  void tell(GangId gang, const to_client::Message& message);
  void output(GangId gang, StepId step, std::uint32_t node, const from_agent::Output& chunk,
              std::string_view payload);
  // Told to the clients that follow the step (or to `only` one of them), once all output up to
  // `sizes` has been forwarded.
  void step_ended(GangId gang, const to_client::StepEnded& message,
                  const std::vector<std::uint64_t>& sizes, const Link* only);
  // From where on a follower still needs each node's output; nothing if nobody follows.
  std::optional<std::vector<std::uint64_t>> needed(GangId gang, StepId step) const;
  bool followed(GangId gang, StepId step) const;

 private:
  void flush_end(Client& client, StepId step);
  std::map<const Link*, Client> clients_;
  std::vector<Gone> gone_;
};

}  // namespace tutti::controller
