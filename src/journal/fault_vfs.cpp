#include "journal/fault_vfs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "base/check.h"

namespace tutti::journal {
namespace {

constexpr std::int64_t kSector = 512;

// One change since the last sync, with what undoes it.
struct Change {
  std::int64_t offset = 0;  // of a write; the new size of a truncation
  bool truncates = false;
  std::string written;  // empty for a truncation
  std::string before;   // what lay there; shorter than `written` at the end of the file
  std::int64_t size_before = 0;
};

// A plain file by its path, for crash(): SQLite has closed it by then.
class RawFile {
 public:
  explicit RawFile(const std::string& path) : descriptor_(::open(path.c_str(), O_RDWR)) {}
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  ~RawFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  bool exists() const { return descriptor_ >= 0; }
  void write(std::int64_t offset, std::string_view data) {
    const auto size = static_cast<ssize_t>(data.size());
    TUTTI_CHECK(pwrite(descriptor_, data.data(), data.size(), offset) == size);
  }
  void resize(std::int64_t size) { TUTTI_CHECK(ftruncate(descriptor_, size) == 0); }
  std::int64_t size() const { return lseek(descriptor_, 0, SEEK_END); }

 private:
  int descriptor_;
};

using Changes = std::vector<Change>;

void undo(RawFile& file, const Changes& changes) {
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    file.resize(change->size_before);
    if (!change->before.empty()) file.write(change->offset, change->before);
  }
}

// Writes the sectors of one change that `keep` chooses.
template <class Keep>
void redo(RawFile& file, const Change& change, Keep keep) {
  if (change.truncates) {
    if (keep()) file.resize(change.offset);
    return;
  }
  const auto end = change.offset + static_cast<std::int64_t>(change.written.size());
  for (std::int64_t at = change.offset; at < end;) {
    const std::int64_t next = std::min(end, (at / kSector + 1) * kSector);
    if (keep()) {
      file.write(at, std::string_view(change.written)
                         .substr(static_cast<std::size_t>(at - change.offset),
                                 static_cast<std::size_t>(next - at)));
    }
    at = next;
  }
}

// What the disk made of the changes: nothing, all, the first so many sectors, or any subset.
void tear(RawFile& file, const Changes& changes, std::mt19937_64& random) {
  const std::int64_t grown = file.size();
  undo(file, changes);
  const std::uint64_t manner = random() % 5;
  std::uint64_t sectors = 0;
  for (const Change& change : changes) sectors += change.written.size() / kSector + 1;
  std::uint64_t prefix = random() % (sectors + 1);
  const std::uint64_t chance = 1 + random() % 99;
  for (const Change& change : changes) {
    redo(file, change, [&] {
      if (manner == 0) return false;
      if (manner == 1) return true;
      if (manner == 2) {
        const bool inside = prefix > 0;
        if (inside) --prefix;
        return inside;
      }
      return random() % 100 < chance;
    });
  }
  // A file system may record the new size before the content: zeros at the end.
  if (random() % 3 == 0 && grown > file.size()) file.resize(grown);
}

}  // namespace

struct FaultVfs::Impl {
  std::string name;
  sqlite3_vfs vfs{};
  sqlite3_vfs* real = nullptr;
  std::map<std::string, Changes> unsynced;
  std::uint64_t writes = 0;
  std::uint64_t syncs = 0;
  std::uint64_t calls = 0;
  std::uint64_t sync_failures = 0;
  std::uint64_t fault_call = 0;  // 0: none
  Fault fault = Fault::kFailOnce;
  bool off = false;
  std::optional<std::uint64_t> free_space;

  // Counts one call; true when it must fail.
  bool fails() {
    ++calls;
    if (off) return true;
    if (fault_call == 0 || calls != fault_call) return false;
    if (fault == Fault::kPowerOff) off = true;
    return true;
  }
};

namespace {

// SQLite allocates szOsFile bytes and keeps a pointer to the first member; the real VFS's file
// follows this struct in the same block.
struct File {
  sqlite3_file base;
  FaultVfs::Impl* disk;
  const char* path;  // null for a temporary file, which no crash concerns
};

File* self(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(self(file) + 1); }

// Logs a change before it is made. Only files with a path are logged.
void remember(sqlite3_file* file, std::string_view written, sqlite3_int64 offset, bool truncates) {
  if (self(file)->path == nullptr) return;
  Change change;
  change.offset = offset;
  change.truncates = truncates;
  change.written = written;
  real(file)->pMethods->xFileSize(real(file),
                                  reinterpret_cast<sqlite3_int64*>(&change.size_before));
  const std::int64_t end =
      truncates ? change.size_before
                : std::min<std::int64_t>(change.size_before,
                                         offset + static_cast<std::int64_t>(written.size()));
  if (end > offset) {
    change.before.resize(static_cast<std::size_t>(end - offset));
    real(file)->pMethods->xRead(real(file), change.before.data(), static_cast<int>(end - offset),
                                offset);
  }
  self(file)->disk->unsynced[self(file)->path].push_back(std::move(change));
}

int write_now(sqlite3_file* file, std::string_view data, sqlite3_int64 offset) {
  remember(file, data, offset, false);
  return real(file)->pMethods->xWrite(real(file), data.data(), static_cast<int>(data.size()),
                                      offset);
}

int close_file(sqlite3_file* file) { return real(file)->pMethods->xClose(real(file)); }
int read_file(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
  return real(file)->pMethods->xRead(real(file), data, size, offset);
}

int write_file(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  FaultVfs::Impl& disk = *self(file)->disk;
  ++disk.writes;
  std::string_view bytes(static_cast<const char*>(data), static_cast<std::size_t>(size));
  const bool was_off = disk.off;
  if (disk.fails()) {
    // The write in which the power goes may reach the disk in part: crash() decides.
    if (!was_off && disk.off) write_now(file, bytes, offset);
    return SQLITE_IOERR_WRITE;
  }
  sqlite3_int64 old_size = 0;
  real(file)->pMethods->xFileSize(real(file), &old_size);
  const sqlite3_int64 growth = std::max<sqlite3_int64>(0, offset + size - old_size);
  if (disk.free_space && static_cast<std::uint64_t>(growth) > *disk.free_space) {
    // As a real disk does: what fits is written.
    const sqlite3_int64 fits = size - growth + static_cast<sqlite3_int64>(*disk.free_space);
    if (fits > 0) write_now(file, bytes.substr(0, static_cast<std::size_t>(fits)), offset);
    disk.free_space = 0;
    return SQLITE_FULL;
  }
  if (disk.free_space) *disk.free_space -= static_cast<std::uint64_t>(growth);
  return write_now(file, bytes, offset);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  FaultVfs::Impl& disk = *self(file)->disk;
  if (disk.fails()) return SQLITE_IOERR_TRUNCATE;
  sqlite3_int64 old_size = 0;
  real(file)->pMethods->xFileSize(real(file), &old_size);
  if (disk.free_space && old_size > size) {
    *disk.free_space += static_cast<std::uint64_t>(old_size - size);
  }
  remember(file, {}, size, true);
  return real(file)->pMethods->xTruncate(real(file), size);
}

int sync_file(sqlite3_file* file, int) {
  FaultVfs::Impl& disk = *self(file)->disk;
  ++disk.syncs;
  if (disk.fails()) return SQLITE_IOERR_FSYNC;
  if (disk.sync_failures > 0) {
    --disk.sync_failures;
    return SQLITE_IOERR_FSYNC;
  }
  if (self(file)->path != nullptr) disk.unsynced.erase(self(file)->path);
  return SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return real(file)->pMethods->xFileSize(real(file), size);
}
int lock_file(sqlite3_file* file, int level) {
  return real(file)->pMethods->xLock(real(file), level);
}
int unlock_file(sqlite3_file* file, int level) {
  return real(file)->pMethods->xUnlock(real(file), level);
}
int check_reserved(sqlite3_file* file, int* result) {
  return real(file)->pMethods->xCheckReservedLock(real(file), result);
}
int file_control(sqlite3_file* file, int operation, void* argument) {
  // The system's VFS would extend the file by itself on a hint, behind the log of changes.
  if (operation == SQLITE_FCNTL_SIZE_HINT || operation == SQLITE_FCNTL_CHUNK_SIZE) return SQLITE_OK;
  return real(file)->pMethods->xFileControl(real(file), operation, argument);
}
int sector_size(sqlite3_file*) { return kSector; }
int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }
int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** memory) {
  return real(file)->pMethods->xShmMap(real(file), page, size, extend, memory);
}
int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}
void shm_barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
int shm_unmap(sqlite3_file* file, int remove) {
  return real(file)->pMethods->xShmUnmap(real(file), remove);
}

// Version 2: with shared memory for the log's index, without memory-mapped reading.
constexpr sqlite3_io_methods kMethods = {
    2,         close_file,  read_file,      write_file,   truncate_file, sync_file,       file_size,
    lock_file, unlock_file, check_reserved, file_control, sector_size,   characteristics, shm_map,
    shm_lock,  shm_barrier, shm_unmap,      nullptr,      nullptr};

FaultVfs::Impl& disk_of(sqlite3_vfs* vfs) { return *static_cast<FaultVfs::Impl*>(vfs->pAppData); }

int open_file(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  FaultVfs::Impl& disk = disk_of(vfs);
  *self(file) = File{{nullptr}, &disk, path};
  std::memset(real(file), 0, static_cast<std::size_t>(disk.real->szOsFile));
  const int code = disk.real->xOpen(disk.real, path, real(file), flags, out_flags);
  // Without methods SQLite does not call xClose after a failed open.
  if (code == SQLITE_OK) file->pMethods = &kMethods;
  return code;
}

int delete_file(sqlite3_vfs* vfs, const char* path, int sync_directory) {
  FaultVfs::Impl& disk = disk_of(vfs);
  if (disk.off) return SQLITE_IOERR_DELETE;
  disk.unsynced.erase(path);
  return disk.real->xDelete(disk.real, path, sync_directory);
}

}  // namespace

FaultVfs::FaultVfs() : impl_(std::make_unique<Impl>()) {
  static std::atomic<int> count{0};
  sqlite3_initialize();
  impl_->name = fmt::format("tutti-fault-{}", ++count);
  impl_->real = sqlite3_vfs_find(nullptr);
  TUTTI_CHECK(impl_->real != nullptr);
  impl_->vfs = *impl_->real;  // names, time, randomness: the system's
  impl_->vfs.pNext = nullptr;
  impl_->vfs.zName = impl_->name.c_str();
  impl_->vfs.szOsFile = static_cast<int>(sizeof(File)) + impl_->real->szOsFile;
  impl_->vfs.pAppData = impl_.get();
  impl_->vfs.xOpen = open_file;
  impl_->vfs.xDelete = delete_file;
  // The system's functions find their own data in pAppData, which is ours here.
  impl_->vfs.xAccess = [](sqlite3_vfs* vfs, const char* path, int flags, int* result) {
    sqlite3_vfs* real = disk_of(vfs).real;
    return real->xAccess(real, path, flags, result);
  };
  impl_->vfs.xFullPathname = [](sqlite3_vfs* vfs, const char* path, int size, char* out) {
    sqlite3_vfs* real = disk_of(vfs).real;
    return real->xFullPathname(real, path, size, out);
  };
  TUTTI_CHECK(sqlite3_vfs_register(&impl_->vfs, 0) == SQLITE_OK);
}

FaultVfs::~FaultVfs() { sqlite3_vfs_unregister(&impl_->vfs); }

const std::string& FaultVfs::name() const { return impl_->name; }

void FaultVfs::fault_at(std::uint64_t calls, Fault fault) {
  impl_->fault_call = impl_->calls + calls;
  impl_->fault = fault;
}
void FaultVfs::clear_fault() { impl_->fault_call = 0; }
void FaultVfs::fail_syncs(std::uint64_t count) { impl_->sync_failures = count; }
void FaultVfs::power_off() { impl_->off = true; }

void FaultVfs::crash(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (const auto& [path, changes] : impl_->unsynced) {
    if (RawFile file(path); file.exists()) tear(file, changes, random);
  }
  impl_->unsynced.clear();
  crash_process();
}
void FaultVfs::crash_process() {
  impl_->fault_call = 0;
  impl_->sync_failures = 0;
  impl_->off = false;
}

void FaultVfs::set_free_space(std::optional<std::uint64_t> bytes) { impl_->free_space = bytes; }
std::uint64_t FaultVfs::syncs() const { return impl_->syncs; }
std::uint64_t FaultVfs::writes() const { return impl_->writes; }
std::uint64_t FaultVfs::calls() const { return impl_->calls; }

}  // namespace tutti::journal
