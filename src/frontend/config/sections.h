// The sections of Tutti's own configuration file, each in a source of its own. Shared by those.
#pragma once

#include "frontend/config/queue_source.h"
#include "frontend/config/reading.h"

namespace tutti::config {

// queues_section.cpp: "queues:", with children below "queues:" of a queue.
void read_queues_section(const YamlNode& node, Findings& findings, QueueSource& out);

// Where the queue and what it says were written.
void note_place(QueueSource& out, const Findings& findings, const std::string& queue,
                const std::string& key, Place place);

}  // namespace tutti::config
