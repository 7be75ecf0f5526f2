// sdiag's output: counters of the controller under Slurm's labels, which exporters read by label.
#pragma once

#include "frontend/slurm/view_text.h"
#include "model/views.h"

namespace tutti::slurm {

Output render_sdiag(const DiagView& diag, const TimeText& times);
Output render_sdiag_json(const DiagView& diag);

}  // namespace tutti::slurm
