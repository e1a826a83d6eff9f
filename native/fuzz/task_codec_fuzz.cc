#include <cstdlib>
#include <set>

#include "task_codec.h"

namespace {

using namespace holdfast::runner;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// Whatever is read can be given to execve(2) and to open(2), and is no larger than the message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  const auto header = decode_task_header(message.substr(0, kTaskHeaderSize));
  if (const auto* length = std::get_if<std::size_t>(&header)) require(*length <= kMaxTaskSize);
  const auto decoded = decode_task(message);
  const auto* task = std::get_if<Task>(&decoded);
  if (task == nullptr) {
    require(!std::get<DecodeError>(decoded).problem.empty());
    return 0;
  }
  require(task->timeout.count() > 0 && task->cwd.starts_with('/') && !task->argv.empty() && task->argv[0].starts_with('/'));
  std::size_t total = task->cwd.size();
  for (const auto* texts : {&task->argv, &task->env}) {
    for (const std::string& each : *texts) {
      require(each.find('\0') == each.npos);
      total += 4 + each.size();
    }
  }
  std::set<std::string_view> names;
  for (const TaskFile& file : task->files) {
    require(names.insert(file.name).second && !file.name.empty() && file.name.find('/') == file.name.npos);
    total += 8 + file.name.size() + file.content.size();
  }
  require(total <= size);
  return 0;
}
