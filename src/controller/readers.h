// Readers: one thread that answers GETs from the published picture and the history, so that a long
// listing never holds up the controller or the wire.
#pragma once

#include <memory>

#include "controller/core.h"
#include "controller/queries.h"

namespace tutti::controller {

class Readers {
 public:
  Readers(const Core& core, const Clock& clock, About about, Log& log);
  ~Readers();
  Status start(journal::Journal& journal);
  void stop();
  void read(ApiCall call);  // any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::controller
