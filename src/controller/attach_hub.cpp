#include "controller/attach_hub.h"

#include <algorithm>

namespace tutti::controller {

void AttachHub::open(std::shared_ptr<Link> link, Caller caller, GangId gang, bool owns_gang) {
  const Link* key = link.get();
  clients_[key] = Client{std::move(link), caller, gang, owns_gang, {}, {}};
  // An owner that comes back has nothing to be ended for; steps are taken up again by follow().
  if (owns_gang)
    for (Gone& gone : gone_)
      if (gone.gang == gang) gone.owns_gang = false;
}

AttachHub::Client* AttachHub::find(const Link* link) {
  auto it = clients_.find(link);
  return it == clients_.end() ? nullptr : &it->second;
}

void AttachHub::follow(Client& client, StepId step, std::vector<std::uint64_t> have, std::size_t nodes) {
  have.resize(nodes, 0);
  client.forwarded[step] = std::move(have);
  for (Gone& gone : gone_)
    if (gone.gang == client.gang) std::erase(gone.steps, step);
}

void AttachHub::leave(const Link* link) { clients_.erase(link); }

void AttachHub::lost(const Link* link, Instant deadline) {
  auto it = clients_.find(link);
  if (it == clients_.end()) return;
  const Client& client = it->second;
  Gone gone{deadline, client.gang, client.owns_gang, {}, client.caller.uid};
  for (const auto& [step, have] : client.forwarded) gone.steps.push_back(step);
  gone_.push_back(std::move(gone));
  clients_.erase(it);
}

std::vector<AttachHub::Gone> AttachHub::take_gone(Instant now) {
  std::vector<Gone> over;
  std::erase_if(gone_, [&](Gone& gone) {
    if (gone.deadline > now) return !gone.owns_gang && gone.steps.empty();
    over.push_back(std::move(gone));
    return true;
  });
  return over;
}

Instant AttachHub::next_deadline() const {
  Instant next = Instant::never();
  for (const Gone& gone : gone_) next = std::min(next, gone.deadline);
  return next;
}

void AttachHub::tell(GangId gang, const to_client::Message& message) {
  std::string frame;
  for (auto& [key, client] : clients_) {
    if (client.gang != gang) continue;
    if (frame.empty()) frame = encode_frame(message);
    client.link->send(frame);
  }
}

void AttachHub::output(GangId gang, StepId step, std::uint32_t node, const from_agent::Output& chunk,
                       std::string_view payload) {
  for (auto& [key, client] : clients_) {
    auto followed = client.forwarded.find(step);
    if (client.gang != gang || followed == client.forwarded.end()) continue;
    if (node >= followed->second.size() || chunk.offset != followed->second[node]) continue;
    followed->second[node] = chunk.next;
    to_client::Message message =
        to_client::Output{step, node, chunk.rank, chunk.is_error, chunk.next, chunk.end};
    client.link->send(encode_frame(message, payload));
    flush_end(client, step);
  }
}

void AttachHub::step_ended(GangId gang, to_client::StepEnded message,
                           const std::vector<std::uint64_t>& sizes) {
  for (auto& [key, client] : clients_) {
    if (client.gang != gang) continue;
    client.ended[message.step] = {message, sizes};
    flush_end(client, message.step);
  }
}

void AttachHub::flush_end(Client& client, StepId step) {
  auto end = client.ended.find(step);
  if (end == client.ended.end()) return;
  auto followed = client.forwarded.find(step);
  if (followed != client.forwarded.end()) {
    const auto& sizes = end->second.second;
    for (std::size_t node = 0; node < sizes.size() && node < followed->second.size(); ++node)
      if (followed->second[node] < sizes[node]) return;
  }
  to_client::Message message = end->second.first;
  client.link->send(encode_frame(message));
  client.ended.erase(end);
}

bool AttachHub::followed(GangId gang, StepId step) const {
  return std::any_of(clients_.begin(), clients_.end(), [&](const auto& entry) {
    return entry.second.gang == gang && entry.second.forwarded.contains(step);
  });
}

}  // namespace tutti::controller
