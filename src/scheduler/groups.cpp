// Groups of gangs: an incomplete one waits and holds nothing, a complete one is placed as one gang
// and starts whole or not at all.
#include <algorithm>
#include <map>

#include "model/reasons.h"
#include "scheduler/explain.h"
#include "scheduler/pass.h"

namespace tutti::scheduler {

namespace {

using GroupName = std::pair<std::uint32_t, std::string_view>;  // of a user

std::string_view group_of(const Element& element) {
  return element.entry->workload.extras->terms.group;
}

void wait_for_others(Pass& pass, Element& element) {
  if (!element.wait) note_ineligible(pass, element, {reason::kGroupIncomplete, Instant()});
}

void join(Pass& pass, const std::vector<std::uint32_t>& members) {
  Element& leader = pass.elements[members.front()];
  std::vector<RoleAsk>& roles = pass.flavour_roles.emplace_back();
  for (std::uint32_t member : members) {
    const std::vector<RoleAsk>& own = *pass.elements[member].entry->workload.roles;
    roles.insert(roles.end(), own.begin(), own.end());
    if (member == members.front()) continue;
    pass.elements[member].leader = members.front();
    leader.members.push_back(member);
  }
  leader.roles = &roles;
}

}  // namespace

void join_groups(Pass& pass) {
  std::map<GroupName, std::vector<std::uint32_t>> groups;
  for (std::uint32_t i = 0; i < pass.elements.size(); ++i) {
    const Element& element = pass.elements[i];
    if (!group_of(element).empty())
      groups[{element.entry->workload.uid, group_of(element)}].push_back(i);
  }
  if (groups.empty()) return;
  for (const auto& [name, members] : groups) {
    const std::uint32_t size =
        pass.elements[members.front()].entry->workload.extras->terms.group_size;
    std::vector<std::uint32_t> ready;
    for (std::uint32_t member : members)
      if (!pass.elements[member].wait) ready.push_back(member);
    if (ready.size() == size) {
      join(pass, ready);
      continue;
    }
    // One that ran before and is pending again goes on beside those of the group that run.
    for (std::uint32_t member : members)
      if (!pass.elements[member].gang || members.size() == size)
        wait_for_others(pass, pass.elements[member]);
  }
}

void settle_groups(Pass& pass) {
  for (Element& element : pass.elements) {
    if (!element.leader) continue;
    const Element& leader = pass.elements[*element.leader];
    element.settled = leader.settled;
    element.wait = leader.wait;
  }
}

}  // namespace tutti::scheduler
