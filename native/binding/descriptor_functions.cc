#include "descriptor_functions.h"

#include "arguments.h"
#include "errno_error.h"
#include "fd_passing.h"

namespace holdfast::binding {
namespace {

constexpr double kMostFds = 2147483647.0;
/// A day: a longer wait is a mistake.
constexpr double kLongestMs = 86'400'000;

int fd_argument(const Napi::CallbackInfo& info, std::size_t index) { return static_cast<int>(integer_argument(info, index, "fd", 0, kMostFds)); }

std::chrono::milliseconds patience_argument(const Napi::CallbackInfo& info, std::size_t index) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(integer_argument(info, index, "timeoutMs", 0, kLongestMs)));
}

Napi::Value open_channel_value(const Napi::CallbackInfo& info) {
  Channel channel;
  if (const int error = open_channel(channel)) throw errno_error(info.Env(), "openChannel", -error);
  const Napi::Object value = Napi::Object::New(info.Env());
  value.Set("ours", static_cast<double>(channel.ours.release()));
  value.Set("theirs", static_cast<double>(channel.theirs.release()));
  return value;
}

Napi::Value send_descriptors_value(const Napi::CallbackInfo& info) {
  const int channel = fd_argument(info, 0);
  if (!info[1].IsString()) throw Napi::TypeError::New(info.Env(), "text must be a string");
  if (!info[2].IsArray()) throw Napi::TypeError::New(info.Env(), "fds must be an array");
  const auto list = info[2].As<Napi::Array>();
  std::vector<int> fds;
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Value item = list.Get(i);
    if (!item.IsNumber()) throw Napi::TypeError::New(info.Env(), "fds must be numbers");
    fds.push_back(item.As<Napi::Number>().Int32Value());
  }
  const int error = send_parcel(channel, info[1].As<Napi::String>().Utf8Value(), fds, patience_argument(info, 3));
  if (error != 0) throw errno_error(info.Env(), "sendDescriptors", -error);
  return info.Env().Undefined();
}

Napi::Value receive_descriptors_value(const Napi::CallbackInfo& info) {
  Parcel parcel;
  const int error = receive_parcel(fd_argument(info, 0), parcel, patience_argument(info, 1));
  if (error != 0) throw errno_error(info.Env(), "receiveDescriptors", -error);
  const Napi::Object value = Napi::Object::New(info.Env());
  const Napi::Array fds = Napi::Array::New(info.Env(), parcel.fds.size());
  for (std::uint32_t i = 0; i < fds.Length(); ++i) fds.Set(i, static_cast<double>(parcel.fds[i].release()));
  value.Set("text", parcel.text);
  value.Set("fds", fds);
  return value;
}

}  // namespace

void set_descriptor_functions(Napi::Env env, Napi::Object exports) {
  const auto set = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  set("openChannel", open_channel_value);
  set("sendDescriptors", send_descriptors_value);
  set("receiveDescriptors", receive_descriptors_value);
}

}  // namespace holdfast::binding
