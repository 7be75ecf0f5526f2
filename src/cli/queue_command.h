// tutti queue apply|list|show|delete|export, tutti apply -f, tutti up --queues. Each returns the
// exit code.
#pragma once

#include <string>
#include <vector>

namespace tutti::cli {

struct QueueFileOptions {
  std::string file;        // "-" = the standard input
  bool manifests = false;  // Kubernetes objects, laid over what is there; else the whole tree
  bool check_only = false;
  std::string state_dir;  // "" = the client's
};
// Everything that is wrong is printed with its place; then the queues stay as they are.
int run_queue_file(const QueueFileOptions& options);
// The part of it that needs no cluster; prints what is wrong.
bool check_queue_file(const QueueFileOptions& options);

struct QueueListOptions {
  std::string name;  // "" = all
  bool json = false;
};
int run_queue_list(const QueueListOptions& options);
int run_queue_delete(const std::vector<std::string>& names);
int run_queue_export();

}  // namespace tutti::cli
