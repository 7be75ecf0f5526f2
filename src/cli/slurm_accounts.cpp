// sacctmgr and sshare: the account book asked for, changed, and shown.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "base/local_time.h"
#include "cli/api_client.h"
#include "cli/help_texts.h"
#include "cli/slurm_commands.h"
#include "cli/slurm_context.h"
#include "cli/slurm_reading.h"
#include "cli/version.h"
#include "frontend/slurm/sacctmgr.h"
#include "model/api.h"

namespace tutti::cli {

namespace {

std::optional<int> said(Words words, std::string_view program) {
  for (const std::string& word : words) {
    if (word == "-V" || word == "--version") return shown(slurm::Show::kVersion, program);
    if (word == "--help" || word == "-h") return shown(slurm::Show::kHelp, program);
    if (word == "--usage") return shown(slurm::Show::kUsage, program);
  }
  return std::nullopt;
}

bool agreed() {
  print_out("Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): ");
  std::fflush(stdout);
  char line[16] = {};
  return std::fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

}  // namespace

int run_sacctmgr(Words words) {
  if (auto code = said(words, "sacctmgr")) return *code;
  ApiClient api;
  auto view = api.get_as<AccountsView>("/v1/accounts");
  if (!view) return finish(slurm::command_error("sacctmgr", view.error().message));
  slurm::SacctmgrAnswer answer = slurm::run_sacctmgr_words(words, *view);
  const int shown_code = print(answer.output);
  if (answer.output.exit_code != 0 || answer.change.empty()) return shown_code;
  if (!answer.immediate && !agreed()) {
    print_out(" Changes Discarded\n");
    return 0;
  }
  auto done = api.post_as<ActionReply>("/v1/accounts", AccountsRequest{view->version, answer.change});
  if (done) return 0;
  // Source of the text: sacctmgr of users who are no operators.
  if (done.error().code == ErrorCode::kDenied) {
    print_err(" Problem with the request: Access/permission denied\n");
    return 1;
  }
  print_err(fmt::format(" Problem with the request: {}\n", done.error().message));
  return 1;
}

int run_sshare(Words words) {
  if (auto code = said(words, "sshare")) return *code;
  LocalZone zone;
  ApiClient api;
  auto view = api.get_as<AccountsView>("/v1/accounts");
  if (!view) return finish(slurm::command_error("sshare", view.error().message));
  return print(slurm::render_sshare(words, *view, client_context(zone).user));
}

}  // namespace tutti::cli
