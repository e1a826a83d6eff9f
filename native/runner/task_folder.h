#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "exit_record.h"
#include "task_codec.h"
#include "unique_fd.h"

namespace holdfast::runner {

/// Who holds which byte of `lock`. The locks are fcntl(2)'s: a child does not inherit them, the kernel names the holder, and asking does not
/// take them. The price: a process that closes any descriptor of the file loses them, hence one descriptor per folder.
enum class Role : off_t { keeper = 0, supervisor = 1 };

/// The folder of one task, `<runs>/<id>`, private to this user. What stands in it:
///
///   lock      held while a process of the task may be alive
///   started   there before the program is: a task is started once, ever
///   stdout, stderr   the first bytes of each stream
///   files/    what the program finds beside itself
///   exit      how it ended, whole or not there
///
/// Members throw std::system_error.
class TaskFolder {
 public:
  /// Made when it is missing.
  static TaskFolder make(const std::string& runs, const std::string& id);
  /// Nothing when it is missing.
  static std::optional<TaskFolder> open(const std::string& runs, const std::string& id);

  /// False when another process has that byte.
  bool lock(Role role);
  /// A process that has that byte; 0: none; -1: one that has no number in this PID namespace.
  pid_t holder(Role role) const;
  /// The same for either byte.
  pid_t holder() const;

  bool has_started() const;
  void write_files(const std::vector<TaskFile>& files) const;
  net::UniqueFd make_output(const char* name) const;
  /// Takes the space that `finish` needs, so that also a full disk learns the end.
  void reserve_exit() const;
  /// Durable when it returns, and not there when it throws. False when it stood there.
  bool mark_started() const;
  void unmark_started() const noexcept;
  /// Durable when it returns.
  void finish(const ExitRecord& record) const;

 private:
  static TaskFolder within(net::UniqueFd runs, const std::string& id);
  TaskFolder(net::UniqueFd runs, net::UniqueFd folder, net::UniqueFd lock);

  net::UniqueFd runs_;
  net::UniqueFd folder_;
  net::UniqueFd lock_;
};

}  // namespace holdfast::runner
