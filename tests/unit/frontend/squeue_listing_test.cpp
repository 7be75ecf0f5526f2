// The table made from a listing is the table made from the whole state.
#include "frontend/slurm/squeue_render.h"
#include "model/listing.h"
#include "tests/unit/frontend/golden_support.h"

namespace tutti::slurm::golden {
namespace {

std::optional<ListingWriter::Waits> waits(const std::optional<Wait>& wait) {
  if (!wait) return std::nullopt;
  return ListingWriter::Waits{wait->reason, wait->planned_start};
}

std::string pack(const StateView& view) {
  ListingWriter out(view.now, view.cluster, view.workloads.size());
  for (const WorkloadView& w : view.workloads) {
    out.workload(w.workload,
                 {w.unstarted, w.simple_unstarted, waits(w.wait), w.priority.total, w.time_limit, w.partition, w.outcome, w.ended,
                  w.eligible},
                 w.gangs.size());
    for (const GangView& g : w.gangs) {
      out.gang(g.gang, waits(g.wait));
      for (std::size_t i = 0; i < g.gang.slots.size(); ++i) out.slot(g.gang.slots[i], g.nodes[i]);
    }
  }
  return out.take();
}

Output from_listing(const StateView& view, const SqueueOptions& options) {
  const std::string packed = pack(view);
  Result<ListingReader> listing = ListingReader::open(packed);
  EXPECT_TRUE(listing);
  std::string printed;
  Result<Output> out = render_squeue(*listing, options, [&](std::string_view text) { printed += text; });
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  out->text = printed + out->text;
  return *out;
}

// Jobs of every kind there is: running, waiting, arrays, a heterogeneous one, held, over.
StateView everything() {
  StateView view = jobs_31_to_35();
  for (const WorkloadView& w : array_19().workloads) view.workloads.push_back(w);
  WorkloadView het = simple_job(40, "het", at(20, 0, 1));
  std::vector<RoleAsk> roles(2);
  roles[1].nodes_min = 3;
  roles[1].tasks = 7;
  het.workload.roles = roles;
  view.workloads.push_back(het);
  WorkloadView held = simple_job(41, "h\u00e9ld", at(20, 0, 2));
  held.workload.hold = Hold::kUser;
  held.workload.nice = -7;
  view.workloads.push_back(held);
  WorkloadView over = simple_job(42, "over", at(20, 0, 3));
  over.simple_unstarted = false;
  over.outcome = Outcome::kCancelled;
  over.ended = at(20, 1, 0);
  view.workloads.push_back(over);
  WorkloadView ran = simple_job(43, "ran", at(20, 0, 4));
  ran.simple_unstarted = false;
  ran.gangs.push_back(gang_on(43, 43, GangState::kDone, {"node03", "node04"}, 16, 1024, 2));
  ran.gangs[0].gang.outcome = Outcome::kTimeout;
  ran.gangs[0].gang.started = at(19, 0, 0);
  ran.gangs[0].gang.ended = at(20, 0, 30);
  view.workloads.push_back(ran);
  return view;
}

TEST(SqueueListing, SameTableAsFromTheWholeState) {
  const StateView view = everything();
  for (const char* format : {"", "%i %t %R", "%a|%A|%B|%c|%C|%D|%e|%F|%g|%G|%i|%j|%K|%l|%L|%M|%N|%p|%P|%q|%Q|%r|%R|%S|%t|%T|%u|%U|%V|%y"})
    for (const char* sort : {"", "i", "-i", "P,-t,j", "-S", "e,-M", "u,-V,D", "C,y"})
      for (bool all : {false, true}) {
        SqueueOptions o;
        o.times = times(view.now);
        o.format = format;
        o.sort = sort;
        o.filter.all_states = all;
        o.arrays = all ? ArrayRows::kByElement : ArrayRows::kFolded;
        ASSERT_TRUE(listing_suffices(o)) << format << sort;
        EXPECT_EQ(from_listing(view, o).text, render_squeue(view, o).text) << format << " by " << sort;
      }
}

TEST(SqueueListing, FiltersAreTheSame) {
  const StateView view = everything();
  auto check = [&](auto change) {
    SqueueOptions o;
    o.times = times(view.now);
    change(o);
    ASSERT_TRUE(listing_suffices(o));
    EXPECT_EQ(from_listing(view, o).text, render_squeue(view, o).text);
  };
  check([](SqueueOptions& o) { o.filter.users = {"alice"}; });
  check([](SqueueOptions& o) { o.filter.users = {"nobody"}; });
  check([](SqueueOptions& o) { o.filter.states = {JobState::kTimeout, JobState::kPending}; });
  check([](SqueueOptions& o) { o.filter.nodes = {"node01"}; });
  check([](SqueueOptions& o) { o.filter.names = {"het"}; });
  check([](SqueueOptions& o) { o.kind = SqueueOptions::Kind::kStart, o.format = "%i %S"; });
  check([](SqueueOptions& o) { o.long_form = true; });
}

TEST(SqueueListing, WhatItDoesNotHaveIsAskedOtherwise) {
  auto suffices = [](auto change) {
    SqueueOptions o;
    change(o);
    return listing_suffices(o);
  };
  EXPECT_TRUE(suffices([](SqueueOptions&) {}));
  EXPECT_FALSE(suffices([](SqueueOptions& o) { o.format = "%i %k"; }));
  EXPECT_FALSE(suffices([](SqueueOptions& o) { o.sort = "m"; }));
  EXPECT_FALSE(suffices([](SqueueOptions& o) { o.name_format = "jobid,tres-alloc"; }));
  EXPECT_TRUE(suffices([](SqueueOptions& o) { o.name_format = "jobid,name"; }));
  EXPECT_FALSE(suffices([](SqueueOptions& o) { o.filter.jobs = {{31, {}, {}}}; }));
  EXPECT_FALSE(suffices([](SqueueOptions& o) { o.kind = SqueueOptions::Kind::kSteps; }));
}

TEST(SqueueListing, DamageIsAnError) {
  const std::string packed = pack(everything());
  EXPECT_FALSE(ListingReader::open("tutti listing 9\n"));
  for (std::size_t size = kListingMagic.size(); size < packed.size(); ++size) {
    Result<ListingReader> listing = ListingReader::open(std::string_view(packed).substr(0, size));
    if (!listing) continue;
    WorkloadView view;
    std::size_t read = 0;
    Result<bool> more = true;
    while ((more = listing->next(view)) && *more) ++read;
    // A cut between two jobs can't be seen; any other can.
    EXPECT_LT(read, everything().workloads.size()) << size;
  }
}

}  // namespace
}  // namespace tutti::slurm::golden
