// Messages between the controller and an agent, over one long-lived channel that the agent dials.
// Every order carries gang and epoch: an agent refuses an order of an older epoch than it knows
// and answers a repeated one as it did the first time, so duplicates and reorderings are harmless.
// A message is one line of JSON; Output and Input are followed by raw bytes (base/frame.h).
//
//   agent -> controller   hello, ready | refused, started, rank_exited, step_ended, clean, output
//   controller -> agent   welcome, prepare_gang, prepare_step, go, abort, signal, end_gang, input,
//                         output_taken
//
// Roll call of a gang: prepare_gang to every node (with the batch step on the first) -> ready from
// all -> go. Of a step: prepare_step -> ready from all -> go. In between no rank has run: ranks of
// a prepared step stand forked behind a barrier in their supervisor.
#pragma once

#include "base/frame.h"
#include "model/from_agent.h"
#include "model/to_agent.h"
