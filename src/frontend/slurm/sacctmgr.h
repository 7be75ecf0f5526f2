// sacctmgr in its basic form: add, modify, delete and show of accounts, users, QOSs and
// associations. Words and layout follow man sacctmgr (22.05). A command becomes either a text or a
// change of the book with what is asked before it is made.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "frontend/slurm/view_text.h"
#include "model/accounts_api.h"

namespace tutti::slurm {

struct SacctmgrAnswer {
  Output output;               // text, errors, exit code
  AccountsConfigured change;   // empty when there is nothing to do
  bool immediate = false;      // -i: nobody is asked
};
// `words` without the program's name.
SacctmgrAnswer run_sacctmgr_words(std::span<const std::string> words, const AccountsView& view);

// sshare. `me`: whose rows are shown without -a and -u.
Output render_sshare(std::span<const std::string> words, const AccountsView& view,
                     std::string_view me);

// "cpu=10,mem=4G,gres/gpu=2" read and written; mem in MiB. -1 takes a resource out.
bool read_tres(std::string_view text, TresAmounts& amounts);
std::string tres_text(const TresAmounts& amounts);

// Limits by sacctmgr's names, in any case: "MaxJobs", "GrpTRES", "MaxTRESPerUser". False when there
// is no such limit; `bad` when the value is none.
bool set_association_limit(std::string_view key, std::string_view value, AssociationLimits& limits,
                           bool& bad);
bool set_qos_value(std::string_view key, std::string_view value, Qos& qos, bool& bad);

// A table as Slurm's print_fields does it: right-aligned, cut with "+"; or with "|" between.
struct FieldTable {
  struct Column {
    std::string title;
    int width = 10;  // negative: left-aligned
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  bool no_header = false, parsable = false, parsable2 = false;
  std::string render() const;
};

}  // namespace tutti::slurm
