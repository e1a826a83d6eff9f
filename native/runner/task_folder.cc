#include "task_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "system.h"

namespace holdfast::runner {
namespace {

constexpr char kStarted[] = "started";
constexpr char kExit[] = "exit";
constexpr char kUnfinishedExit[] = "exit.new";
constexpr int kNewFile = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;

net::UniqueFd open_at(int folder, const std::string& name, int flags) {
  return net::UniqueFd(checked(::openat(folder, name.c_str(), flags | O_CLOEXEC, 0600), name));
}

net::UniqueFd open_folder(int parent, const std::string& name) { return open_at(parent, name, O_RDONLY | O_DIRECTORY); }

void make_folder(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) checked(-1, name);
}

void write_all(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) checked(-1, name);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

struct flock range(short type, off_t start, off_t length) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = start;
  range.l_len = length;
  return range;
}

pid_t holder_of(int lock, off_t start, off_t length) {
  struct flock asked = range(F_WRLCK, start, length);
  checked(::fcntl(lock, F_GETLK, &asked), "lock");
  if (asked.l_type == F_UNLCK) return 0;
  return asked.l_pid > 0 ? asked.l_pid : -1;
}

}  // namespace

TaskFolder::TaskFolder(net::UniqueFd runs, net::UniqueFd folder, net::UniqueFd lock)
    : runs_(std::move(runs)), folder_(std::move(folder)), lock_(std::move(lock)) {}

TaskFolder TaskFolder::make(const std::string& runs, const std::string& id) {
  net::UniqueFd parent = open_folder(AT_FDCWD, runs);
  make_folder(parent.get(), id);
  return within(std::move(parent), id);
}

std::optional<TaskFolder> TaskFolder::open(const std::string& runs, const std::string& id) {
  try {
    return within(open_folder(AT_FDCWD, runs), id);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory) return std::nullopt;
    throw;
  }
}

TaskFolder TaskFolder::within(net::UniqueFd runs, const std::string& id) {
  net::UniqueFd folder = open_folder(runs.get(), id);
  net::UniqueFd lock = open_at(folder.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW);
  return TaskFolder(std::move(runs), std::move(folder), std::move(lock));
}

bool TaskFolder::lock(Role role) {
  struct flock wanted = range(F_WRLCK, static_cast<off_t>(role), 1);
  if (::fcntl(lock_.get(), F_SETLK, &wanted) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw std::system_error(errno, std::generic_category(), "lock");
}

pid_t TaskFolder::holder(Role role) const { return holder_of(lock_.get(), static_cast<off_t>(role), 1); }

pid_t TaskFolder::holder() const { return holder_of(lock_.get(), 0, 2); }

bool TaskFolder::has_started() const {
  struct stat facts {};
  if (::fstatat(folder_.get(), kStarted, &facts, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  throw std::system_error(errno, std::generic_category(), kStarted);
}

void TaskFolder::write_files(const std::vector<TaskFile>& files) const {
  if (files.empty()) return;
  make_folder(folder_.get(), "files");
  const net::UniqueFd folder = open_folder(folder_.get(), "files");
  for (const TaskFile& each : files) {
    const std::string name(each.name);
    const net::UniqueFd file = open_at(folder.get(), name, kNewFile);
    write_all(file.get(), each.content, name);
  }
}

net::UniqueFd TaskFolder::make_output(const char* name) const { return open_at(folder_.get(), name, kNewFile); }

void TaskFolder::reserve_exit() const {
  const net::UniqueFd file = open_at(folder_.get(), kUnfinishedExit, kNewFile);
  write_all(file.get(), std::string(kMaxExitRecord, '\n'), kUnfinishedExit);
  checked(::fsync(file.get()), kUnfinishedExit);
}

bool TaskFolder::mark_started() const {
  const net::UniqueFd file(::openat(folder_.get(), kStarted, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file && errno == EEXIST) return false;
  checked(file.get(), kStarted);
  try {
    checked(::fsync(file.get()), kStarted);
    checked(::fsync(folder_.get()), "task folder");
    checked(::fsync(runs_.get()), "folder of tasks");
  } catch (...) {
    unmark_started();
    throw;
  }
  return true;
}

void TaskFolder::unmark_started() const noexcept { ::unlinkat(folder_.get(), kStarted, 0); }

void TaskFolder::finish(const ExitRecord& record) const {
  // Written over the reserved bytes and cut afterwards: a full disk has to give nothing.
  const net::UniqueFd file = open_at(folder_.get(), kUnfinishedExit, O_WRONLY | O_NOFOLLOW);
  const std::string text = encode(record);
  write_all(file.get(), text, kUnfinishedExit);
  checked(::ftruncate(file.get(), static_cast<off_t>(text.size())), kUnfinishedExit);
  checked(::fsync(file.get()), kUnfinishedExit);
  checked(::renameat(folder_.get(), kUnfinishedExit, folder_.get(), kExit), kExit);
  checked(::fsync(folder_.get()), "task folder");
}

}  // namespace holdfast::runner
