#include "frontend/slurm/json_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace tutti::slurm {

void JsonOut::open(std::string_view key) {
  if (!key.empty()) writer_.key(key);
  writer_.begin_object();
}
void JsonOut::open_list(std::string_view key) {
  writer_.key(key);
  writer_.begin_array();
}
void JsonOut::text(std::string_view key, std::string_view value) {
  writer_.key(key);
  writer_.string(value);
}
void JsonOut::number(std::string_view key, std::uint64_t value) {
  writer_.key(key);
  writer_.unsigned_integer(value);
}
void JsonOut::signed_number(std::string_view key, std::int64_t value) {
  writer_.key(key);
  writer_.integer(value);
}
void JsonOut::boolean(std::string_view key, bool value) {
  writer_.key(key);
  writer_.boolean(value);
}
void JsonOut::list(std::string_view key, const std::vector<std::string>& values) {
  open_list(key);
  for (const std::string& value : values) writer_.string(value);
  close_list();
}
void JsonOut::maybe(std::string_view key, std::optional<std::uint64_t> value) {
  open(key);
  boolean("set", value.has_value());
  boolean("infinite", false);
  number("number", value.value_or(0));
  close();
}
void JsonOut::infinite(std::string_view key) {
  open(key);
  boolean("set", false);
  boolean("infinite", true);
  number("number", 0);
  close();
}
void JsonOut::time(std::string_view key, Instant at) {
  if (at >= Instant::never()) return infinite(key);
  // Slurm says "set" with 0 for a time that is not known.
  maybe(key, static_cast<std::uint64_t>(std::max<std::int64_t>(at.whole_seconds(), 0)));
}
void JsonOut::exit(std::string_view key, const ExitStatus& exit) {
  open(key);
  list("status", {exit.signal != 0 ? "SIGNALED" : exit.code != 0 ? "ERROR" : "SUCCESS"});
  maybe("return_code", static_cast<std::uint64_t>(exit.code));
  open("signal");
  maybe("id",
        exit.signal == 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(exit.signal)));
  text("name", "");
  close();
  close();
}

void add_meta(JsonOut& out, std::string_view cluster, std::string_view command) {
  out.open("meta");
  out.open("plugin");
  out.text("type", "openapi/slurmctld");
  out.text("name", "Tutti");
  out.text("data_parser", "data_parser/v0.0.42");
  out.text("accounting_storage", "accounting_storage/slurmdbd");
  out.close();
  out.open("client");
  out.text("source", "");
  out.text("user", "");
  out.text("group", "");
  out.close();
  out.list("command", {std::string(command)});
  out.open("slurm");
  out.open("version");
  out.text("major", "24");
  out.text("micro", "0");
  out.text("minor", "11");
  out.close();
  out.text("release", "24.11.0");
  out.text("cluster", cluster);
  out.close();
  out.close();
  out.list("errors", {});
  out.list("warnings", {});
}

}  // namespace tutti::slurm
