// LabelledFiles: what `srun --label --output=FILE` writes. Nodes write files without labels; so these
// lines come to the client, which writes them.
#pragma once

#include <cstdint>
#include <string>

#include "cli/step_output.h"
#include "model/api.h"

namespace tutti::cli {

// Of one step.
struct LabelledFiles {
  StreamTarget out, err;  // kFile, or anything else for "not a file"
  std::string work_dir;
  bool append = false;
  bool any() const { return out.kind == StreamKind::kFile || err.kind == StreamKind::kFile; }
};
// Takes the files out of the order; the streams are attached then.
LabelledFiles take_files(StepOrder& order);

// Writes lines of ranks to the files their patterns name, each opened at its first line.
StepOutput::WriteRank labelled_writer(const LabelledFiles& files, GangId job, const StepReply& reply);

}  // namespace tutti::cli
