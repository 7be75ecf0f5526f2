#include "agent/node_holder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/namespaces.h"
#include "agent/netlink.h"
#include "agent/node_mounts.h"

namespace tutti::agent {

namespace {

constexpr const char* kBridge = "br0";

// Locally administered; the same for a node that is started again, so that its neighbours' entries
// stay right. 1 is the bridge.
MacAddress mac_of(std::uint32_t number) {
  return {0x02,
          0x74,
          0x75,
          0x74,
          static_cast<std::uint8_t>(number >> 8),
          static_cast<std::uint8_t>(number)};
}

// IPv6 may be switched off on a machine; the cluster lives without it.
Status add_address6(Netlink& netlink, const std::string& link, const std::string& address,
                    std::vector<std::string>& missing) {
  auto status = netlink.add_address(link, address, 64);
  if (!status) missing.push_back(status.error().message);
  return {};
}

Status become_switch(const HolderOrder& order, std::vector<std::string>& missing) {
  if (order.user_namespace) {
    const auto uid = ::geteuid();
    const auto gid = ::getegid();
    if (::unshare(CLONE_NEWUSER) < 0) return fail_errno(errno, "user namespace");
    if (const int error = detail::write_id_maps(0, uid, 0, gid)) {
      return fail_errno(error, "mapping the user");
    }
  }
  if (::unshare(CLONE_NEWNET) < 0) return fail_errno(errno, "network namespace");
  auto netlink = Netlink::open();
  if (!netlink) return tl::unexpected(netlink.error());
  Status status = netlink->set_up("lo");
  if (status) status = netlink->add_bridge(kBridge, mac_of(1));
  if (status) status = netlink->add_address(kBridge, std::string(kSwitchAddress), 16);
  if (status) status = add_address6(*netlink, kBridge, "fd54:7574:7469::1", missing);
  return status;
}

// The veth pair is made from the switch's side: there the port joins the bridge at once, and the
// other end lands in the node's namespace under its final name.
Status connect_node(const HolderOrder& order, Netlink& switch_side,
                    std::vector<std::string>& missing) {
  Descriptor own(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!own) return fail_errno(errno, "/proc/self/ns/net");
  auto netlink = Netlink::open();
  if (!netlink) return tl::unexpected(netlink.error());
  const VethSpec veth{fmt::format("n{}", order.index), kBridge, "eth0", mac_of(order.index + 2),
                      own.get()};
  Status status = switch_side.add_veth(veth);
  if (!status && status.error().code == ErrorCode::kConflict) {
    // The port of this node's last life: the kernel takes namespaces down at its leisure.
    status = switch_side.remove_link(veth.port);
    if (status) status = switch_side.add_veth(veth);
  }
  if (status) status = netlink->set_up("lo");
  if (status) status = netlink->set_up("eth0");
  if (status) status = netlink->add_address("eth0", node_address(order.index), 16);
  if (status) status = add_address6(*netlink, "eth0", node_address6(order.index), missing);
  return status;
}

Status become_node(const HolderOrder& order, std::vector<std::string>& missing) {
  auto process = open_process(order.switch_holder);
  if (!process) return tl::unexpected(process.error());
  const int flags = detail::with_user_namespace(order.switch_holder.pid, CLONE_NEWNET);
  if (::setns(process->get(), flags) < 0) return fail_errno(errno, "entering the switch");
  auto switch_side = Netlink::open();
  if (!switch_side) return tl::unexpected(switch_side.error());
  if (::unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS) < 0) {
    return fail_errno(errno, "network, host name and mount namespaces");
  }
  if (auto status = connect_node(order, *switch_side, missing); !status) return status;
  if (::sethostname(order.name.data(), order.name.size()) < 0) {
    return fail_errno(errno, "host name " + order.name);
  }
  return make_node_mounts({order.name, order.directory, order.hosts_path, order.devices}, missing);
}

Result<std::string> read_order() {
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < (1U << 20)) {
    const ssize_t size = ::read(0, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(errno, "reading the order");
    if (size == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return invalid("the order is too long");
}

Status carry_out(std::vector<std::string>& missing) {
  auto text = read_order();
  if (!text) return tl::unexpected(text.error());
  auto order = from_json<HolderOrder>(*text);
  if (!order) return tl::unexpected(order.error());
  ::prctl(PR_SET_NAME, ("tutti:" + order->name).c_str());
  return order->switch_holder ? become_node(*order, missing) : become_switch(*order, missing);
}

}  // namespace

int run_node_holder() {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  ::sigprocmask(SIG_BLOCK, &stops, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  HolderAnswer answer;
  const auto status = carry_out(answer.missing);
  answer.ready = status.has_value();
  if (!status) answer.error = status.error().message;
  const auto text = to_json(answer);
  const bool told = ::write(1, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!answer.ready || !told) return 1;
  // The node's own /dev/null by now; a switch has the host's.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) ::dup2(null, fd);
  close_from(3);
  int signal_number = 0;
  ::sigwait(&stops, &signal_number);
  return 0;
}

}  // namespace tutti::agent
