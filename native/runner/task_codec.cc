#include "task_codec.h"

#include <climits>
#include <unordered_set>

namespace holdfast::runner {
namespace {

constexpr std::string_view kMagic = "HFTASK1\n";

struct Malformed {
  std::string problem;
};

[[noreturn]] void fail(std::string problem) { throw Malformed{std::move(problem)}; }

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::size_t count) {
    if (rest_.size() < count) fail("truncated");
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint32_t u32() {
    std::uint32_t value = 0;
    const auto bytes = take(4);
    for (std::size_t i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[i])) << (8 * i);
    return value;
  }
  std::string_view bytes() { return take(u32()); }
  /// Of things that begin with a length. Before anything is reserved for them: a count that the message cannot hold is refused.
  std::size_t count() {
    const std::size_t count = u32();
    if (rest_.size() / 4 < count) fail("truncated");
    return count;
  }
  std::string text(const char* what) {
    const auto text = bytes();
    if (text.find('\0') != text.npos) fail(std::string(what) + " has a NUL byte");
    return std::string(text);
  }
  std::vector<std::string> texts(const char* what) {
    std::vector<std::string> texts(count());
    for (std::string& each : texts) each = text(what);
    return texts;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool is_absolute(const std::string& path) { return path.starts_with('/'); }

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > NAME_MAX || name == "." || name == "..") return false;
  return name.find('/') == name.npos && name.find('\0') == name.npos;
}

std::vector<TaskFile> read_files(Reader& in) {
  std::vector<TaskFile> files(in.count());
  std::unordered_set<std::string_view> seen;
  for (TaskFile& file : files) {
    file.name = in.bytes();
    file.content = in.bytes();
    if (!is_name(file.name)) fail("a file's name is not a name");
    if (!seen.insert(file.name).second) fail("a file stands twice");
  }
  return files;
}

Task read_task(Reader& in) {
  Task task;
  task.timeout = std::chrono::milliseconds(in.u32());
  task.max_output = in.u32();
  task.cwd = in.text("working directory");
  task.argv = in.texts("argument");
  task.env = in.texts("environment");
  task.files = read_files(in);
  if (!in.empty()) fail("bytes after the end");
  if (task.timeout.count() == 0) fail("time-out is 0");
  if (!is_absolute(task.cwd)) fail("working directory is not absolute");
  if (task.argv.empty()) fail("no program");
  if (!is_absolute(task.argv[0])) fail("program is not absolute");
  for (const std::string& each : task.env) {
    if (const auto equals = each.find('='); equals == 0 || equals == each.npos) fail("environment without a name");
  }
  return task;
}

}  // namespace

std::variant<std::size_t, DecodeError> decode_task_header(std::string_view header) {
  try {
    Reader in(header);
    if (in.take(kMagic.size()) != kMagic) fail("not a task");
    const std::size_t size = in.u32();
    if (size > kMaxTaskSize) fail("has " + std::to_string(size) + " bytes, at most " + std::to_string(kMaxTaskSize) + " are possible");
    return size;
  } catch (Malformed& malformed) {
    return DecodeError{std::move(malformed.problem)};
  }
}

std::variant<Task, DecodeError> decode_task(std::string_view message) {
  try {
    Reader in(message);
    return read_task(in);
  } catch (Malformed& malformed) {
    return DecodeError{std::move(malformed.problem)};
  }
}

}  // namespace holdfast::runner
