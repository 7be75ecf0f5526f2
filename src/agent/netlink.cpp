#include "agent/netlink.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace tutti::agent {

namespace {

// A netlink message under construction: header, fixed part, attributes (4-byte aligned).
class Message {
 public:
  template <class Fixed>
  Message(std::uint16_t type, std::uint16_t flags, const Fixed& fixed) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    append(&header, sizeof header);
    append(&fixed, sizeof fixed);
  }
  void attribute(unsigned type, const void* data, std::size_t size) {
    rtattr head{};
    head.rta_len = static_cast<unsigned short>(RTA_LENGTH(size));
    head.rta_type = static_cast<unsigned short>(type);
    append(&head, sizeof head);
    append(data, size);
  }
  void attribute(unsigned type, const std::string& text) {
    attribute(type, text.c_str(), text.size() + 1);
  }
  template <class Number>
  void number(unsigned type, Number value) {
    attribute(type, &value, sizeof value);
  }
  std::size_t begin(unsigned type) {
    const auto at = bytes_.size();
    attribute(type, nullptr, 0);
    return at;
  }
  void end(std::size_t at) {
    rtattr head{};
    std::memcpy(&head, bytes_.data() + at, sizeof head);
    head.rta_len = static_cast<unsigned short>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at, &head, sizeof head);
  }
  template <class Fixed>
  void fixed(const Fixed& value) {
    append(&value, sizeof value);
  }
  std::span<char> bytes() { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    const auto at = bytes_.size();
    bytes_.resize(at + NLMSG_ALIGN(size));
    if (size) std::memcpy(bytes_.data() + at, data, size);
  }
  std::vector<char> bytes_;
};

ifinfomsg link_message(int index, unsigned flags) {
  ifinfomsg message{};
  message.ifi_index = index;
  message.ifi_flags = flags;
  message.ifi_change = flags;
  return message;
}

}  // namespace

Result<Netlink> Netlink::open() {
  Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return fail_errno(errno, "netlink socket");
  return Netlink(std::move(socket));
}

Result<int> Netlink::request(std::span<char> message, const std::string& what) {
  nlmsghdr header{};
  std::memcpy(&header, message.data(), sizeof header);
  header.nlmsg_len = static_cast<std::uint32_t>(message.size());
  header.nlmsg_seq = ++sequence_;
  std::memcpy(message.data(), &header, sizeof header);
  if (::send(socket_.get(), message.data(), message.size(), 0) < 0) return fail_errno(errno, what);
  alignas(nlmsghdr) std::array<char, 16384> buffer;
  while (true) {
    const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < static_cast<ssize_t>(sizeof header)) return fail_errno(size < 0 ? errno : EIO, what);
    std::memcpy(&header, buffer.data(), sizeof header);
    if (header.nlmsg_seq != sequence_) continue;
    if (header.nlmsg_type == NLMSG_ERROR) {
      nlmsgerr answer{};
      std::memcpy(&answer, buffer.data() + NLMSG_HDRLEN, sizeof answer);
      if (answer.error) return fail_errno(-answer.error, what);
      return 0;
    }
    ifinfomsg link{};
    std::memcpy(&link, buffer.data() + NLMSG_HDRLEN, sizeof link);
    return link.ifi_index;
  }
}

Result<int> Netlink::index_of(const std::string& link) {
  Message message(RTM_GETLINK, 0, link_message(0, 0));
  message.attribute(IFLA_IFNAME, link);
  return request(message.bytes(), "finding link " + link);
}

namespace {
Status as_status(const Result<int>& result) {
  if (!result) return tl::unexpected(result.error());
  return {};
}
}  // namespace

Status Netlink::set_up(const std::string& link) {
  auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  Message message(RTM_NEWLINK, NLM_F_ACK, link_message(*index, IFF_UP));
  return as_status(request(message.bytes(), "setting link " + link + " up"));
}

Status Netlink::add_bridge(const std::string& name, const MacAddress& mac) {
  Message message(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, link_message(0, IFF_UP));
  message.attribute(IFLA_IFNAME, name);
  message.attribute(IFLA_ADDRESS, mac.data(), mac.size());
  const auto info = message.begin(IFLA_LINKINFO);
  message.attribute(IFLA_INFO_KIND, "bridge");
  message.end(info);
  return as_status(request(message.bytes(), "making bridge " + name));
}

Status Netlink::add_veth(const VethSpec& spec) {
  auto bridge = index_of(spec.bridge);
  if (!bridge) return tl::unexpected(bridge.error());
  Message message(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, link_message(0, IFF_UP));
  message.attribute(IFLA_IFNAME, spec.port);
  message.number(IFLA_MASTER, *bridge);
  const auto info = message.begin(IFLA_LINKINFO);
  message.attribute(IFLA_INFO_KIND, "veth");
  const auto data = message.begin(IFLA_INFO_DATA);
  const auto peer = message.begin(VETH_INFO_PEER);
  message.fixed(link_message(0, 0));
  message.attribute(IFLA_IFNAME, spec.inside);
  message.attribute(IFLA_ADDRESS, spec.inside_mac.data(), spec.inside_mac.size());
  message.number(IFLA_NET_NS_FD, spec.inside_namespace);
  message.end(peer);
  message.end(data);
  message.end(info);
  return as_status(request(message.bytes(), "making veth pair " + spec.port));
}

Status Netlink::remove_link(const std::string& link) {
  Message message(RTM_DELLINK, NLM_F_ACK, link_message(0, 0));
  message.attribute(IFLA_IFNAME, link);
  const auto result = request(message.bytes(), "removing link " + link);
  if (!result && result.error().message.ends_with(strerror(ENODEV))) return {};
  return as_status(result);
}

Status Netlink::add_address(const std::string& link, const std::string& address, int prefix_bits) {
  auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  std::array<char, 16> bytes{};
  const bool v6 = address.find(':') != std::string::npos;
  if (::inet_pton(v6 ? AF_INET6 : AF_INET, address.c_str(), bytes.data()) != 1) {
    return invalid("not an IP address: " + address);
  }
  ifaddrmsg fixed{};
  fixed.ifa_family = v6 ? AF_INET6 : AF_INET;
  fixed.ifa_prefixlen = static_cast<std::uint8_t>(prefix_bits);
  fixed.ifa_flags = v6 ? IFA_F_NODAD : 0;
  fixed.ifa_index = static_cast<std::uint32_t>(*index);
  Message message(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, fixed);
  message.attribute(IFA_LOCAL, bytes.data(), v6 ? 16 : 4);
  message.attribute(IFA_ADDRESS, bytes.data(), v6 ? 16 : 4);
  return as_status(request(message.bytes(), "giving " + link + " the address " + address));
}

}  // namespace tutti::agent
