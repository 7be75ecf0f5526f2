// scontrol create|update|delete|show reservation and sinfo -T.
#include "frontend/slurm/reservation_command.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "frontend/slurm/scontrol_show.h"
#include "frontend/slurm/sinfo_render.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

Parsed<ScontrolCommand> parse(const std::string &line) {
  ClientContext context;
  context.now = Instant::from_ms(1'600'000'000'000);
  std::vector<std::string> words;
  for (std::string_view word : split(line, ' ', EmptyPieces::kDrop))
    words.emplace_back(word);
  return parse_scontrol(words, context);
}

ShowOptions options(Instant now) {
  ShowOptions o;
  o.times = times(now);
  return o;
}

std::string refusal(const std::string &line) {
  auto parsed = parse(line);
  return parsed ? "accepted" : parsed.error().text;
}

TEST(Reservation, EverythingThatIsHonoured) {
  auto parsed = parse("create reservation=night StartTime=now Duration=120 "
                      "Nodes=n[1-2] PartitionName=p "
                      "Features=a&b Users=ann,-bob Accounts=x Groups=g "
                      "Flags=maint,ignore_jobs,daily Comment=why");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->verb, ScontrolVerb::kReservation);
  const ReservationRequest &r = parsed->reservation;
  EXPECT_EQ(r.action, "create");
  EXPECT_EQ(r.name, "night");
  EXPECT_EQ(r.duration, Duration::minutes(120));
  EXPECT_EQ(r.nodes, "n[1-2]");
  EXPECT_EQ(r.partition, "p");
  EXPECT_EQ(r.features, "a&b");
  EXPECT_EQ(r.users, (std::vector<std::string>{"ann", "-bob"}));
  EXPECT_EQ(r.flags,
            (std::vector{ReservationFlag::kMaint, ReservationFlag::kIgnoreJobs,
                         ReservationFlag::kDaily}));
  EXPECT_TRUE(r.not_honoured.empty());
  parsed =
      parse("create res starttime=now endtime=now+1hour tres=node=4 users=ann");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->reservation.node_count, 4u);
  parsed = parse("delete reservationname=night");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->reservation.action, "delete");
  EXPECT_EQ(parsed->reservation.name, "night");
  parsed = parse("update reservation=night duration=30");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->reservation.action, "update");
}

TEST(Reservation, WhatHasNoEffectIsSaid) {
  auto parsed = parse("create reservation starttime=now duration=1 nodes=ALL "
                      "users=a flags=magnetic,flex watts=1k "
                      "licenses=foo:1");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->reservation.not_honoured,
            (std::vector<std::string>{"Flags=MAGNETIC", "watts=1k",
                                      "licenses=foo:1"}));
}

TEST(Reservation, Refusals) {
  auto has = [](const std::string &line, std::string_view part) {
    std::string text = refusal(line);
    EXPECT_NE(text.find(part), std::string::npos) << line << ": " << text;
  };
  has("create reservation nodes=ALL users=a", "start and an end");
  has("create reservation starttime=now duration=1 users=a", "node list");
  has("create reservation starttime=now duration=1 nodes=ALL", "Users/Groups");
  has("create reservation starttime=now duration=1 nodes=ALL users=a "
      "flags=what",
      "Invalid flag");
  has("create reservation starttime=now duration=1 nodes=ALL users=a corecnt=4",
      "whole nodes");
  has("create reservation starttime=now duration=1 users=a tres=gres/gpu=4",
      "whole");
  has("create reservation starttime=then duration=1 nodes=ALL users=a", "then");
  has("create reservation colour=red", "colour");
  has("update reservation=r users+=ann", "whole list");
  has("delete reservation", "must be given");
  has("create partition=p", "Invalid entity");
  has("create", "too few arguments");
}

TEST(Reservation, ShownAsSlurmShowsIt) {
  StateView view = cluster();
  Reservation r;
  r.name = "night";
  r.start = at(20, 0, 0);
  r.end = at(22, 0, 0);
  r.nodes = {view.nodes[0].spec.name, view.nodes[1].spec.name};
  r.users = {"root"};
  r.flags = {ReservationFlag::kMaint, ReservationFlag::kSpecNodes};
  view.reservations = {r};
  view.now = at(21, 0, 0);
  std::string text = show_reservations(view, {}, options(view.now)).text;
  EXPECT_TRUE(text.starts_with("ReservationName=night StartTime=")) << text;
  for (const char *part : {" Duration=02:00:00\n", "NodeCnt=2 CoreCnt=",
                           " Flags=MAINT,SPEC_NODES\n   TRES=cpu=",
                           "   Users=root Groups=(null) Accounts=(null) "
                           "Licenses=(null) State=ACTIVE"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_EQ(show_reservations(view, {"x"}, options(view.now)).exit_code, 1);
  std::string table =
      render_sinfo_reservations(view, options(view.now).times, false).text;
  EXPECT_TRUE(table.starts_with("RESV_NAME      STATE           START_TIME     "
                                "        END_TIME     DURATION  NODELIST\n"
                                "night         ACTIVE  "))
      << table;
}

TEST(Reservation, StatesOfNodes) {
  StateView view = cluster();
  NodeView node = view.nodes[0];
  node.state.status = NodeStatus::kUp;
  node.reservation = "night";
  EXPECT_EQ(node_state_compact(node_state(node)), "resv");
  EXPECT_TRUE(matches(node_state(node), *parse_node_state("resv")));
  node.maintenance = true;
  EXPECT_EQ(node_state_compact(node_state(node)), "maint");
  EXPECT_EQ(node_state_complete(node_state(node)), "IDLE+MAINTENANCE+RESERVED");
  EXPECT_TRUE(matches(node_state(node), *parse_node_state("maint")));
}

} // namespace
} // namespace tutti::slurm
