#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holdfast::runner {

/// What stands beside the program. Both parts lie in the message that was decoded.
struct TaskFile {
  std::string_view name;
  std::string_view content;
};

struct Task {
  std::chrono::milliseconds timeout{0};
  /// Bytes kept of each stream.
  std::uint32_t max_output = 0;
  std::string cwd;
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::vector<TaskFile> files;
};

struct DecodeError {
  std::string problem;
};

/// In front of each message: "HFTASK1\n" and the number of bytes that follow, so that its end is known while the writer's side is open.
constexpr std::size_t kTaskHeaderSize = 12;
/// A script has at most 8 MiB, and execve(2) takes about 2 MiB of arguments and environment.
constexpr std::size_t kMaxTaskSize = 64u << 20;

/// The number of bytes that follow `header`, which has kTaskHeaderSize.
std::variant<std::size_t, DecodeError> decode_task_header(std::string_view header);

/// Reads a task. All integers are little-endian; src/adapters/instruction/task-codec.ts writes the same.
///
///   u32 time-out in ms · u32 bytes kept of each stream · string working directory
///   · u32 count, then strings: arguments · the same: environment, `NAME=value` · u32 count, then of each file two strings: name, content
///   string: u32 length · that many bytes
///
/// Whatever the bytes are, the answer is a task with a time-out, a program and a working directory that are absolute, no NUL in what
/// execve(2) gets, and files that are names (no path) and stand there once; or the first problem.
std::variant<Task, DecodeError> decode_task(std::string_view message);

}  // namespace holdfast::runner
