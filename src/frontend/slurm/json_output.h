// The JSON forms of squeue, sinfo, sacct, sdiag and scontrol show job, after the schema v0.0.42
// that today's REST clients share: numbers that may be unset are {"set","infinite","number"},
// states are lists. Pieces shared by the commands; the entry points are beside their texts
// (render_squeue_json and so on).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "frontend/slurm/view_job.h"
#include "frontend/slurm/view_node.h"

namespace tutti::slurm {

class JsonOut {
 public:
  JsonWriter& raw() { return writer_; }
  void open(std::string_view key);  // an object
  void open_list(std::string_view key);
  void close() { writer_.end_object(); }
  void close_list() { writer_.end_array(); }
  void text(std::string_view key, std::string_view value);
  void number(std::string_view key, std::uint64_t value);
  void signed_number(std::string_view key, std::int64_t value);
  void boolean(std::string_view key, bool value);
  void list(std::string_view key, const std::vector<std::string>& values);
  // {"set":true,"infinite":false,"number":N}; nullopt is unset.
  void maybe(std::string_view key, std::optional<std::uint64_t> value);
  void infinite(std::string_view key);
  // Seconds since 1970, unset when the instant is.
  void time(std::string_view key, Instant at);
  // {"status":["SUCCESS"],"return_code":{...},"signal":{"id":{...},"name":""}}
  void exit(std::string_view key, const ExitStatus& exit);
  std::string take() { return writer_.take() + "\n"; }

 private:
  JsonWriter writer_;
};

// "meta", "errors" and "warnings" as the last members of a reply.
void add_meta(JsonOut& out, std::string_view cluster, std::string_view command);
// One element of "jobs" of squeue and scontrol.
void add_job(JsonOut& out, const JobRow& row, const StateView& view,
             const std::vector<std::uint32_t>& arrays);
// One element of "nodes".
void add_node(JsonOut& out, const NodeView& node, const StateView& view, const UserNames& users);

}  // namespace tutti::slurm
