#include "engine/planned.h"

#include <iterator>
#include <utility>

namespace tutti {

namespace {
// One overload per order; the empty ones need no answer.
struct Answer {
  NodeIndex node;
  std::vector<AgentAnswer>& answers;

  void say(from_agent::Message message) { answers.push_back({node, std::move(message), {}}); }
  void operator()(const to_agent::PrepareGang& o) {
    say(from_agent::Ready{{o.job.gang, o.job.epoch, kExternStep}});
  }
  void operator()(const to_agent::PrepareStep& o) {
    say(from_agent::Ready{{o.gang, o.epoch, o.order.step}});
  }
  void operator()(const to_agent::Go& o) {
    if (o.key.step != kExternStep) say(from_agent::Started{o.key, {}});
  }
  void operator()(const to_agent::Abort& o) {
    if (o.key.step == kExternStep)
      say(from_agent::Clean{o.key.gang, o.key.epoch});
    else
      ended(o.key, true);
  }
  void operator()(const to_agent::EndStep& o) { ended(o.key, false); }
  void operator()(const to_agent::EndGang& o) { say(from_agent::Clean{o.gang, o.epoch}); }
  void operator()(const auto&) {}

  void ended(StepKey key, bool never_ran) {
    from_agent::StepEnded message;
    message.key = key;
    message.never_ran = never_ran;
    message.exit.signal = never_ran ? 0 : 15;
    say(std::move(message));
  }
};
}  // namespace

bool PlannedEngine::send(NodeIndex node, const to_agent::Message& order, std::string_view) {
  std::visit(Answer{node, answers_}, order);
  return true;
}

std::vector<AgentAnswer> PlannedEngine::take_answers() { return std::exchange(answers_, {}); }

void PlannedEngine::give_back(std::vector<AgentAnswer> answers) {
  answers.insert(answers.end(), std::make_move_iterator(answers_.begin()),
                 std::make_move_iterator(answers_.end()));
  answers_ = std::move(answers);
}

}  // namespace tutti
