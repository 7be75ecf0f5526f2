// The rules of order and accounting that an administrator sets: weights of Slurm's multifactor
// priority, how usage fades, and what an association is needed for.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/archive.h"
#include "base/decay.h"
#include "base/time.h"

namespace tutti {

// The weights and rules of Slurm's multifactor priority (man slurm.conf, Priority...).
struct PriorityWeights {
  std::uint32_t age = 1000, fair_share = 10000, job_size = 1000, partition = 1000, qos = 0;
  std::uint32_t association = 0;
  std::map<std::string, std::uint32_t> tres;  // PriorityWeightTRES, by resource
  Duration max_age = Duration::seconds(7 * 86400);
  Duration half_life = Duration::seconds(7 * 86400);  // of usage; 0 = nothing fades
  ResetPeriod reset_period = ResetPeriod::kNone;
  bool favor_small = false;             // PriorityFavorSmall
  bool size_relative_to_time = false;   // SMALL_RELATIVE_TO_TIME
  bool accrue_always = false;           // ACCRUE_ALWAYS: age counts from the submission
  bool bill_largest = false;            // MAX_TRES
  bool unnormalised_association = false, unnormalised_partition = false,
       unnormalised_qos = false, unnormalised_tres = false;  // NO_NORMAL_...
};
template <class A>
void describe(A& a, PriorityWeights& x) {
  a("age", x.age);
  a("fair_share", x.fair_share);
  a("job_size", x.job_size);
  a("partition", x.partition);
  a("qos", x.qos);
  a("max_age_ms", x.max_age);
  a("half_life_ms", x.half_life);
  a("association", x.association);
  a("tres", x.tres);
  a("reset_period", x.reset_period);
  a("favor_small", x.favor_small);
  a("size_relative_to_time", x.size_relative_to_time);
  a("accrue_always", x.accrue_always);
  a("bill_largest", x.bill_largest);
  a("unnormalised_association", x.unnormalised_association);
  a("unnormalised_partition", x.unnormalised_partition);
  a("unnormalised_qos", x.unnormalised_qos);
  a("unnormalised_tres", x.unnormalised_tres);
}

// AccountingStorageEnforce. Without a word on it nobody needs an association (whoever submits gets
// one with one share), but limits that somebody set hold.
struct AccountingRules {
  bool associations = false;  // only who is in the book may submit
  bool limits = true;
  bool qos = false;   // only a QOS that the association lists
  bool safe = false;  // a job starts only if it can end within the group's minutes
};
template <class A>
void describe(A& a, AccountingRules& x) {
  a("associations", x.associations);
  a("limits", x.limits);
  a("qos", x.qos);
  a("safe", x.safe);
}

}  // namespace tutti
