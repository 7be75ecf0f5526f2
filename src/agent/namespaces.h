// Linux namespaces: what this machine and user may make, how to enter those of a holder process,
// and how to open a socket in one without living there. Nothing here changes the host's own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/process.h"
#include "base/error.h"

namespace tutti::agent {

struct NamespaceSupport {
  bool network = false;
  bool host_name = false;
  bool mounts = false;
  // The three above exist only inside a user namespace of one's own (an ordinary user, or root
  // without CAP_SYS_ADMIN): no device nodes can be made then.
  bool through_user_namespace = false;
  std::vector<std::string> missing;  // "network namespace: Operation not permitted (...)"
  bool all() const { return network && host_name && mounts; }
};
// Tries each for real in a short-lived child (about 10 ms), as the caller.
NamespaceSupport probe_namespaces();

// Makes the calling process a member of the holder's user (where it differs), network, host name
// and mount namespaces. The process must have one thread; its working directory becomes "/". In an
// ordinary user's cluster it is uid 0 of that cluster afterwards.
// kNotFound when the holder is gone, also if its pid is another process' now.
Status enter_node(const ProcessRef& holder);

struct ListenAddress {
  std::string address;     // IPv4 or IPv6 literal
  std::uint16_t port = 0;  // 0 = the kernel picks
};
// A listening TCP socket that lives in the holder's network namespace; the caller stays outside
// and may have threads. Nonblocking, close-on-exec.
Result<Descriptor> listen_in_switch(const ProcessRef& holder, const ListenAddress& where);
// The local port of a socket.
Result<std::uint16_t> local_port(int socket);

// For a process with one thread that is uid 0 of an ordinary user's cluster: a nested user
// namespace that shows it these ids again (those it has outside). All capabilities over the
// cluster's namespaces are gone with the next exec.
Status become_user_in_userns(uid_t uid, gid_t gid);

namespace detail {
// The CLONE_NEW* flags of `wanted`, with CLONE_NEWUSER if the process is in another user namespace.
int with_user_namespace(pid_t pid, int wanted);
// Runs a function in a child that shares our memory and descriptors but not our namespaces, and
// waits for it. The function must not throw, and returns 0 or an errno.
int run_aside(int (*function)(void*), void* argument);
}  // namespace detail

}  // namespace tutti::agent
