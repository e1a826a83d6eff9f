#include "task_codec.h"

#include <gtest/gtest.h>

#include <functional>

namespace holdfast::runner {
namespace {

using namespace std::string_literals;

/// 65,536 ms, 100 bytes of each stream, in "/", /bin/echo with one argument, one variable, one file. Written out, not built by the code under
/// test; test/adapters/instruction/task-codec.test.ts expects the encoder to make the same.
const std::string kGood =
    "\0\0\1\0"s "\x64\0\0\0"s                                        // time-out, output
    "\1\0\0\0/"s                                                     // working directory
    "\2\0\0\0"s "\x9\0\0\0/bin/echo"s "\2\0\0\0hi"s                  // arguments
    "\1\0\0\0"s "\3\0\0\0A=b"s                                       // environment
    "\1\0\0\0"s "\6\0\0\0script"s "\3\0\0\0\0\xff\n"s;               // files
constexpr std::size_t kCwdAt = 12;
constexpr std::size_t kProgramAt = 21;
constexpr std::size_t kArgumentAt = 34;
constexpr std::size_t kVariableAt = 44;
constexpr std::size_t kNameAt = 55;

std::string problem(std::string_view message) {
  const auto decoded = decode_task(message);
  const auto* error = std::get_if<DecodeError>(&decoded);
  return error == nullptr ? "" : error->problem;
}

TEST(TaskCodec, ReadsWhatIsWritten) {
  const auto decoded = decode_task(kGood);
  const auto* task = std::get_if<Task>(&decoded);
  ASSERT_NE(task, nullptr) << problem(kGood);
  EXPECT_EQ(task->timeout.count(), 65'536);
  EXPECT_EQ(task->max_output, 100u);
  EXPECT_EQ(task->cwd, "/");
  EXPECT_EQ(task->argv, (std::vector<std::string>{"/bin/echo", "hi"}));
  EXPECT_EQ(task->env, std::vector<std::string>{"A=b"});
  ASSERT_EQ(task->files.size(), 1u);
  EXPECT_EQ(task->files[0].name, "script");
  EXPECT_EQ(task->files[0].content, "\0\xff\n"s);
}

TEST(TaskCodec, NamesWhatIsWrong) {
  const struct {
    const char* problem;
    std::function<void(std::string&)> change;
  } cases[] = {
      {"truncated", [](std::string& m) { m.clear(); }},
      {"truncated", [](std::string& m) { m[8] = '\xff'; }},
      {"truncated", [](std::string& m) { m.replace(13, 4, "\xff\xff\xff\xff"); }},
      {"bytes after the end", [](std::string& m) { m.push_back('x'); }},
      {"time-out is 0", [](std::string& m) { m[2] = '\0'; }},
      {"working directory is not absolute", [](std::string& m) { m[kCwdAt] = '.'; }},
      {"working directory has a NUL byte", [](std::string& m) { m[kCwdAt] = '\0'; }},
      {"program is not absolute", [](std::string& m) { m[kProgramAt] = 'b'; }},
      {"argument has a NUL byte", [](std::string& m) { m[kArgumentAt] = '\0'; }},
      {"environment has a NUL byte", [](std::string& m) { m[kVariableAt] = '\0'; }},
      {"environment without a name", [](std::string& m) { m[kVariableAt] = '='; }},
      {"environment without a name", [](std::string& m) { m[kVariableAt + 1] = 'A'; }},
      {"a file's name is not a name", [](std::string& m) { m[kNameAt] = '/'; }},
      {"a file's name is not a name", [](std::string& m) { m[kNameAt] = '\0'; }},
      {"a file's name is not a name", [](std::string& m) { m.replace(kNameAt - 4, 10, "\2\0\0\0.."s); }},
      {"a file's name is not a name", [](std::string& m) { m.replace(kNameAt - 4, 10, "\0\0\0\0"s); }},
      {"a file stands twice",
       [](std::string& m) {
         const std::string file = m.substr(kNameAt - 4);
         m[kNameAt - 8] = '\2';
         m += file;
       }},
      {"no program", [](std::string& m) { m.replace(kCwdAt + 1, 4 + 13 + 6, "\0\0\0\0"s); }},
  };
  for (const auto& each : cases) {
    std::string message = kGood;
    each.change(message);
    EXPECT_EQ(problem(message), each.problem);
  }
}

TEST(TaskCodec, EveryCutIsRefused) {
  for (std::size_t length = 0; length < kGood.size(); ++length) {
    EXPECT_NE(problem(std::string_view(kGood).substr(0, length)), "") << length;
  }
}

TEST(TaskCodec, TheHeaderSaysHowMuchFollows) {
  const auto size = [](std::string_view header) {
    const auto decoded = decode_task_header(header);
    const auto* error = std::get_if<DecodeError>(&decoded);
    return error == nullptr ? std::to_string(std::get<std::size_t>(decoded)) : error->problem;
  };
  EXPECT_EQ(size("HFTASK1\n\x01\x02\0\0"s), "513");
  EXPECT_EQ(size("HFTASK2\n\x01\x02\0\0"s), "not a task");
  EXPECT_EQ(size("HFTASK1\n\x01\x02\0"s), "truncated");
  EXPECT_EQ(size("HFTASK1\n\x01\0\0\x04"s), "has 67108865 bytes, at most 67108864 are possible");
}

}  // namespace
}  // namespace holdfast::runner
