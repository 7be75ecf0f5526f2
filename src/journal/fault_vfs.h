// A disk that loses power, for tests: a SQLite VFS over the system's that remembers what was
// written since the last sync of each file, and on crash() puts the files into a state that a
// real disk could be in: what was synced, plus any part of the rest, torn at 512-byte sectors.
//
// kill -9 cannot test that, because the page cache survives it. The real sync is left out here
// (nothing is at stake), so thousands of crashes take seconds. Registered by tests only.
//
// Use: FaultVfs disk; OpenOptions{.vfs = disk.name()}; ... disk.power_off(); drop the Journal;
// disk.crash(seed); open again. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tutti::journal {

class FaultVfs {
 public:
  struct Impl;
  // Registers a VFS with a name of its own with SQLite; the destructor removes it. All files
  // opened through it must be closed before.
  FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;
  ~FaultVfs();

  const std::string& name() const;

  // What happens at the chosen call.
  enum class Fault : std::uint8_t {
    kPowerOff,  // this and all later calls fail; a write may have reached the disk in part
    kFailOnce,  // this call fails with an I/O error, later ones work
  };
  // The `calls`-th write, sync or truncation from now (1 = the next) meets `fault`.
  void fault_at(std::uint64_t calls, Fault fault);
  void clear_fault();
  // The next so many syncs fail with an I/O error: what was written may still reach the disk.
  void fail_syncs(std::uint64_t count);

  // From now on no write, sync or truncation works until crash().
  void power_off();
  // Puts every file into a possible state after a loss of power; `seed` chooses which. Works
  // again afterwards. All files must be closed.
  void crash(std::uint64_t seed);

  // In place of crash(): the process died, the machine did not. What was written stays as it is,
  // and is still unsynced.
  void crash_process();

  // Files may grow by so many bytes before SQLITE_FULL; empty: without limit.
  void set_free_space(std::optional<std::uint64_t> bytes);

  // Calls so far.
  std::uint64_t syncs() const;
  std::uint64_t writes() const;
  // Writes, syncs and truncations: what fault_at() counts.
  std::uint64_t calls() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::journal
