// What the writer and the readers both do with the tables. Internal to this module.
#pragma once

#include <string>
#include <vector>

#include "journal/history.h"
#include "journal/sqlite.h"

namespace tutti::journal {

Result<std::vector<std::string>> query_history(Database& database, const HistoryFilter& filter);
Result<std::string> read_blob(Database& database, const BlobId& id);
Result<JournalSizes> read_sizes(Database& database);

}  // namespace tutti::journal
