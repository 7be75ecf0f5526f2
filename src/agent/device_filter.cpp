#include "agent/device_filter.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tutti::agent {

namespace {

// Registers of the program.
constexpr std::uint8_t kResult = BPF_REG_0;
constexpr std::uint8_t kContext = BPF_REG_1;
constexpr std::uint8_t kType = BPF_REG_2;
constexpr std::uint8_t kAccess = BPF_REG_3;
constexpr std::uint8_t kMajor = BPF_REG_4;
constexpr std::uint8_t kMinor = BPF_REG_5;
constexpr std::uint8_t kScratch = BPF_REG_6;

bpf_insn instruction(int code, std::uint8_t target, std::uint8_t source, int offset, int value) {
  bpf_insn insn{};
  insn.code = static_cast<std::uint8_t>(code);
  insn.dst_reg = target & 0xF;
  insn.src_reg = source & 0xF;
  insn.off = static_cast<std::int16_t>(offset);
  insn.imm = value;
  return insn;
}
bpf_insn load_word(std::uint8_t target, std::size_t offset) {
  return instruction(BPF_LDX | BPF_MEM | BPF_W, target, kContext, static_cast<int>(offset), 0);
}
bpf_insn operate(int operation, std::uint8_t target, int value) {
  return instruction(BPF_ALU | operation | BPF_K, target, 0, 0, value);
}
bpf_insn copy(std::uint8_t target, std::uint8_t source) {
  return instruction(BPF_ALU | BPF_MOV | BPF_X, target, source, 0, 0);
}
// Jumps over `skip` instructions unless the register holds the value.
bpf_insn skip_unless(std::uint8_t reg, std::uint32_t value, int skip) {
  return instruction(BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, skip, static_cast<int>(value));
}
void give_answer(std::vector<bpf_insn>& program, int answer) {
  program.push_back(operate(BPF_MOV, kResult, answer));
  program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
}

std::uint32_t access_bits(const std::string& access) {
  std::uint32_t bits = 0;
  for (char c : access) {
    if (c == 'r') bits |= BPF_DEVCG_ACC_READ;
    if (c == 'w') bits |= BPF_DEVCG_ACC_WRITE;
    if (c == 'm') bits |= BPF_DEVCG_ACC_MKNOD;
  }
  return bits;
}

long call_bpf(int command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

}  // namespace

std::vector<bpf_insn> assemble_device_filter(const std::vector<DeviceRule>& rules) {
  std::vector<bpf_insn> program;
  program.push_back(load_word(kType, offsetof(bpf_cgroup_dev_ctx, access_type)));
  program.push_back(copy(kAccess, kType));
  program.push_back(operate(BPF_AND, kType, 0xFFFF));
  program.push_back(operate(BPF_RSH, kAccess, 16));
  program.push_back(load_word(kMajor, offsetof(bpf_cgroup_dev_ctx, major)));
  program.push_back(load_word(kMinor, offsetof(bpf_cgroup_dev_ctx, minor)));
  for (const auto& rule : rules) {
    // type, access (3 instructions), numbers, answer (2): each test skips what is left.
    int left = 1 + 3 + (rule.major ? 1 : 0) + (rule.minor ? 1 : 0) + 2;
    const std::uint32_t type = rule.type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
    program.push_back(skip_unless(kType, type, --left));
    program.push_back(copy(kScratch, kAccess));
    program.push_back(operate(BPF_AND, kScratch, static_cast<int>(~access_bits(rule.access))));
    left -= 3;
    program.push_back(skip_unless(kScratch, 0, left));
    if (rule.major) program.push_back(skip_unless(kMajor, *rule.major, --left));
    if (rule.minor) program.push_back(skip_unless(kMinor, *rule.minor, --left));
    give_answer(program, 1);
  }
  give_answer(program, 0);
  return program;
}

Result<Descriptor> load_device_filter(const std::vector<DeviceRule>& rules) {
  const auto program = assemble_device_filter(rules);
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
  attributes.insns = reinterpret_cast<std::uint64_t>(program.data());
  attributes.license = reinterpret_cast<std::uint64_t>("Apache-2.0");
  Descriptor fd(static_cast<int>(call_bpf(BPF_PROG_LOAD, attributes)));
  if (!fd) return fail_errno(errno, "loading the device filter (BPF)");
  return fd;
}

Status attach_device_filter(const std::string& group, const std::vector<DeviceRule>& rules) {
  auto program = load_device_filter(rules);
  if (!program) return tl::unexpected(program.error());
  Descriptor directory(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return fail_errno(errno, group);
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.target_fd = static_cast<std::uint32_t>(directory.get());
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(program->get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;
  if (call_bpf(BPF_PROG_ATTACH, attributes) < 0) {
    return fail_errno(errno, "attaching the device filter to " + group);
  }
  return {};
}

}  // namespace tutti::agent
