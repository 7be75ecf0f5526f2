// scontrol create|update|delete reservation, as KEY=VALUE in any case: man scontrol (22.05),
// "RESERVATIONS".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "frontend/slurm/command_options.h"
#include "model/reservation.h"

namespace tutti::slurm {

// `action`: "create", "update" or "delete". What Slurm knows and is not honoured here is listed in
// ReservationRequest::not_honoured. Errors: Slurm's sentence, exit code 1.
Parsed<ReservationRequest> parse_reservation(std::string_view action,
                                             std::span<const std::string> words,
                                             const ClientContext& context);

}  // namespace tutti::slurm
