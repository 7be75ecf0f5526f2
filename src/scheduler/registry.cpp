#include "scheduler/registry.h"

namespace tutti::scheduler {

namespace {

std::vector<AdmitRule> partition_rules() {
  return {require_partition_up(), require_partition_node_limit(), require_partition_time_limit()};
}

const std::vector<Profile>& all_profiles() {
  static const std::vector<Profile> kProfiles{
      {"tutti",
       "priority order; every blocked job within depth is promised a start that no later job "
       "delays",
       order_by_multifactor(), partition_rules(), reserve_for_each()},
      {"easy",
       "priority order; only the first blocked job of each pool is promised a start (EASY "
       "backfill)",
       order_by_submission(), partition_rules(), reserve_for_the_head()},
      {"fcfs", "in order of submission; nobody passes a job that waits for the same nodes",
       order_by_submission(), partition_rules(), reserve_nothing(), false},
  };
  return kProfiles;
}

}  // namespace

const Profile* find_profile(std::string_view name) {
  for (const Profile& profile : all_profiles())
    if (profile.name == name) return &profile;
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> profiles() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Profile& profile : all_profiles())
    out.emplace_back(std::string(profile.name), std::string(profile.sentence));
  return out;
}

}  // namespace tutti::scheduler
