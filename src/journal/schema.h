// The tables of journal.db: made once, and checked at each open. Internal to this module.
#pragma once

#include <string>

#include "base/error.h"
#include "journal/sqlite.h"

namespace tutti::journal {

struct SchemaReport {
  bool created = false;
  std::string cluster_id;  // as stored
};

// Makes the tables in an empty database; otherwise checks that this is a journal, of a format
// that this program knows, and of this cluster. Sets the connection up for writing (log mode, full
// sync). Errors as journal::open.
Result<SchemaReport> prepare_schema(Database& database, const std::string& cluster_id);

// The same check without making anything, for readers.
Status check_format(Database& database);

}  // namespace tutti::journal
