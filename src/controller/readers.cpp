#include "controller/readers.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <thread>

#include "base/index_set.h"
#include "controller/job_lookup.h"
#include "controller/whatif.h"
#include "model/reasons.h"

namespace tutti::controller {

namespace {
constexpr std::size_t kMaxWaiting = 10'000;
constexpr std::uint64_t kLivesTold = 500;  // newest rows of history that `why` looks at

std::vector<std::string> words(const Query& query, const std::string& name) {
  std::vector<std::string> result;
  auto it = query.find(name);
  if (it == query.end()) return result;
  std::string word;
  for (char c : it->second + ",") {
    if (c != ',')
      word.push_back(c);
    else if (!word.empty())
      result.push_back(std::exchange(word, {}));
  }
  return result;
}

std::optional<Instant> time_of(const Query& query, const std::string& name) {
  auto it = query.find(name);
  if (it == query.end() || it->second.empty()) return std::nullopt;
  return Instant::from_ms(std::strtoll(it->second.c_str(), nullptr, 10));
}
// A record of elements that never started, when only some elements of arrays are asked for: with
// those of its elements that are. Nothing: the record is given as it is.
std::optional<JobRecord> elements_named(const std::string& row, const std::vector<journal::JobSelector>& ids) {
  bool any_named = std::any_of(ids.begin(), ids.end(), [](const auto& id) { return id.array_index.has_value(); });
  if (!any_named || row.find("\"unstarted\"") == std::string::npos) return std::nullopt;
  auto record = from_json<JobRecord>(std::string_view(row));
  if (!record || record->unstarted.empty()) return std::nullopt;
  auto elements = parse_index_set(record->unstarted, kNoLimit - 1);
  if (!elements) return std::nullopt;
  IndexSet named;
  for (const journal::JobSelector& id : ids) {
    if (id.id != record->workload.id.value()) continue;
    if (!id.array_index) return std::nullopt;  // the whole array is asked for as well
    auto index = static_cast<std::uint32_t>(*id.array_index);
    if (elements->contains(index)) named.insert(index);
  }
  record->unstarted = named.to_string();
  return std::move(*record);
}
}  // namespace

struct Readers::Impl {
  const Core& core;
  const Clock& clock;
  About about;
  Log& log;
  std::optional<journal::HistoryReader> history;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<ApiCall> queue;
  bool stopping = false;
  std::thread thread;

  HttpAnswer refusal(const Error& error, int status) {
    return {status, to_json(ApiError{error.code, error.reason, error.message})};
  }

  Result<std::string> history_json(const Published& picture, const Query& query) {
    journal::HistoryFilter filter;
    filter.users = words(query, "users");
    filter.accounts = words(query, "accounts");
    filter.partitions = words(query, "partitions");
    filter.names = words(query, "names");
    filter.from = time_of(query, "from_ms");
    filter.to = time_of(query, "to_ms");
    if (query.contains("duplicates")) filter.duplicates = journal::Duplicates::kAll;
    std::set<std::pair<std::uint32_t, std::string>> live_ids;
    auto jobs = query.find("jobs");
    if (jobs != query.end() && !jobs->second.empty()) {
      auto names = parse_job_names(jobs->second);
      if (!names) return tl::unexpected<Error>(names.error());
      for (const JobName& name : *names) {
        auto set = name.array.empty() ? Result<IndexSet>(IndexSet()) : parse_index_set(name.array, kNoLimit - 1);
        if (!set) return tl::unexpected<Error>(set.error());
        if (set->empty()) filter.ids.push_back({name.job, std::nullopt});
        std::uint64_t count = 0;
        for (auto index = set->first(); index && ++count <= 100'000; index = set->next(*index + 1))
          filter.ids.push_back({name.job, *index});
      }
    }
    auto rows = history->query(filter);
    if (!rows) return tl::unexpected<Error>(rows.error());
    JsonWriter out;
    Encoder encode(out);
    out.begin_object();
    encode("now_ms", clock.now());
    out.key("records");
    out.begin_array();
    for (const std::string& row : *rows) {
      auto narrowed = elements_named(row, filter.ids);
      if (!narrowed) out.raw(row);
      else if (!narrowed->unstarted.empty()) encode.write(*narrowed);
    }
    for (const JobRecord& record : live_records(picture, query, clock.now())) encode.write(record);
    out.end_array();
    out.end_object();
    return out.take();
  }

  HttpAnswer answer(ApiCall& call) {
    std::shared_ptr<const Published> picture = core.published();
    if (call.path == "/v1/ping") {
      JsonWriter out;
      Encoder encode(out);
      out.begin_object();
      encode("cluster", picture->state.spec->name);
      encode("version", about.version);
      encode("host", about.host);
      encode("now_ms", clock.now());
      out.end_object();
      return {200, out.take()};
    }
    if (!call.caller.known) return refusal({ErrorCode::kDenied, "not_identified", "who are you? TCP asks for a token", {}}, 403);
    if (call.path == "/v1/state") {
      auto text = state_json(*picture, call.query, about, clock.now());
      return text ? HttpAnswer{200, std::move(*text)} : refusal(text.error(), 400);
    }
    if (call.path == "/v1/listing") {
      const Listed which = call.query["states"] == "all" ? Listed::kAll : Listed::kOpen;
      return {200, listing(*picture, which, clock.now()), "application/octet-stream"};
    }
    if (call.path == "/v1/history") {
      auto text = history_json(*picture, call.query);
      return text ? HttpAnswer{200, std::move(*text)} : refusal(text.error(), 400);
    }
    if (call.path == "/v1/diag") {
      DiagView diag = picture->diag;
      diag.now = clock.now();
      if (auto sizes = history->sizes()) {
        diag.journal_bytes = sizes->database_bytes;
        diag.wal_bytes = sizes->wal_bytes;
      }
      return {200, to_json(diag)};
    }
    if (call.path == "/v1/whatif") {
      auto request = from_json<WhatIfRequest>(std::string_view(call.body));
      if (!request) return refusal({ErrorCode::kInvalid, std::string(reason::kMalformed), request.error().message, {}}, 400);
      auto reply = what_if(*picture, std::move(*request), clock.now());
      return reply ? HttpAnswer{200, to_json(*reply)} : refusal(reply.error(), 400);
    }
    if (call.path == "/v1/why" || call.path == "/v1/script") return about_job(call, *picture);
    return refusal({ErrorCode::kNotFound, "unknown_path", fmt::format("no such interface: {}", call.path), {}}, 404);
  }

  HttpAnswer about_job(ApiCall& call, const Published& picture) {
    auto names = parse_job_names(call.query["job"]);
    if (!names || names->size() != 1) return refusal({ErrorCode::kInvalid, std::string(reason::kMalformed), "name one job: job=12 or job=12_3", {}}, 400);
    std::optional<std::uint32_t> index;
    if (!(*names)[0].array.empty()) index = static_cast<std::uint32_t>(std::strtoul((*names)[0].array.c_str(), nullptr, 10));
    if (call.path == "/v1/why") {
      journal::HistoryFilter filter;
      filter.ids.push_back({(*names)[0].job, index});
      filter.duplicates = journal::Duplicates::kAll;
      filter.limit = kLivesTold;
      std::vector<JobRecord> ended;
      if (auto rows = history->query(filter))
        for (const std::string& row : *rows)
          if (auto record = from_json<JobRecord>(std::string_view(row))) ended.push_back(std::move(*record));
      auto reply = why(picture, (*names)[0].job, index, ended, clock.now());
      return reply ? HttpAnswer{200, to_json(*reply)} : refusal(reply.error(), 404);
    }
    auto target = find_job(picture.state, (*names)[0].job, nullptr);
    if (!target) return refusal({ErrorCode::kNotFound, std::string(reason::kUnknownJob), "job not known", {}}, 404);
    const Workload& w = picture.state.workloads.find(target->workload.value())->workload;
    if (!call.caller.is_operator && call.caller.uid != w.uid)
      return refusal({ErrorCode::kDenied, std::string(reason::kNotOwner), "a script is shown to its owner only", {}}, 403);
    if (!w.launch.script) return refusal({ErrorCode::kNotFound, "no_script", "the job has no batch script", {}}, 404);
    auto text = history->read_blob(*journal::parse_blob_id(to_hex(w.launch.script)));
    return text ? HttpAnswer{200, std::move(*text), "text/plain"} : refusal(text.error(), 500);
  }

  void loop() {
    while (true) {
      ApiCall call;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [this] { return stopping || !queue.empty(); });
        if (stopping) return;
        call = std::move(queue.front());
        queue.pop_front();
      }
      call.reply(answer(call));
    }
  }
};

Readers::Readers(const Core& core, const Clock& clock, About about, Log& log)
    : impl_(new Impl{core, clock, std::move(about), log, {}, {}, {}, {}, false, {}}) {}
Readers::~Readers() { stop(); }

Status Readers::start(journal::Journal& journal) {
  auto reader = journal.open_reader();
  if (!reader) return tl::unexpected<Error>(reader.error());
  impl_->history = std::move(*reader);
  impl_->thread = std::thread([this] { impl_->loop(); });
  return {};
}

void Readers::stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->wake.notify_all();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->history.reset();
}

void Readers::read(ApiCall call) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->stopping || impl_->queue.size() >= kMaxWaiting) {
    lock.unlock();
    call.reply({503, to_json(ApiError{ErrorCode::kUnavailable, "overloaded", "too many readers wait: try again"})});
    return;
  }
  impl_->queue.push_back(std::move(call));
  impl_->wake.notify_one();
}

}  // namespace tutti::controller
