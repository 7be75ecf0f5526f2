#include "controller/attach_hub.h"

#include <algorithm>

namespace tutti::controller {

void AttachHub::open(std::shared_ptr<Link> link, Caller caller, GangId gang) {
  const Link* key = link.get();
  clients_[key] = Client{std::move(link), caller, gang, false, {}, {}};
}

void AttachHub::own(Client& client) {
  client.owns_gang = true;
  for (Gone& gone : gone_)
    if (gone.gang == client.gang) gone.owns_gang = false;
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

std::vector<AttachHub::Gone> AttachHub::gone(Instant now) const {
  std::vector<Gone> over;
  for (const Gone& gone : gone_)
    if (gone.deadline <= now && (gone.owns_gang || !gone.steps.empty())) over.push_back(gone);
  return over;
}

void AttachHub::forget_gone(Instant now) {
  std::erase_if(gone_, [now](const Gone& gone) {
    return gone.deadline <= now || (!gone.owns_gang && gone.steps.empty());
  });
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

void AttachHub::step_ended(GangId gang, const to_client::StepEnded& message,
                           const std::vector<std::uint64_t>& sizes, const Link* only) {
  for (auto& [key, client] : clients_) {
    if (client.gang != gang || !client.forwarded.contains(message.step)) continue;
    if (only && only != key) continue;
    client.ended[message.step] = {message, sizes};
    flush_end(client, message.step);
  }
}

std::optional<std::vector<std::uint64_t>> AttachHub::needed(GangId gang, StepId step) const {
  std::optional<std::vector<std::uint64_t>> least;
  for (const auto& [key, client] : clients_) {
    auto followed = client.forwarded.find(step);
    if (client.gang != gang || followed == client.forwarded.end()) continue;
    if (!least) least = followed->second;
    for (std::size_t i = 0; i < least->size() && i < followed->second.size(); ++i)
      (*least)[i] = std::min((*least)[i], followed->second[i]);
  }
  return least;
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
