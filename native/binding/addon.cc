#include <napi.h>

#include <cerrno>
#include <cstring>

#include "arguments.h"
#include "process.h"
#include "proxy_object.h"

namespace holdfast::binding {
namespace {

/// An Error with the errno's name as `code`, like those of node:fs.
Napi::Error errno_error(Napi::Env env, const char* call, int error) {
  Napi::Error value = Napi::Error::New(env, std::string(call) + ": " + std::strerror(error));
  // strerrorname_np calls it EAGAIN, which is the same number.
  const char* name = error == EWOULDBLOCK ? "EWOULDBLOCK" : ::strerrorname_np(error);
  value.Set("code", Napi::String::New(env, name == nullptr ? "UNKNOWN" : name));
  value.Set("errno", Napi::Number::New(env, -error));
  return value;
}

Napi::Value lock_file_value(const Napi::CallbackInfo& info) {
  const int fd = lock_file(string_argument(info, 0, "path"));
  if (fd < 0) throw errno_error(info.Env(), "lockFile", -fd);
  return Napi::Number::New(info.Env(), fd);
}

Napi::Value peer_uid_value(const Napi::CallbackInfo& info) {
  uid_t uid = 0;
  if (!peer_uid(static_cast<int>(integer_argument(info, 0, "fd", 0, 2147483647.0)), uid)) throw errno_error(info.Env(), "peerUid", errno);
  return Napi::Number::New(info.Env(), uid);
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("Proxy", ProxyObject::define(env));
  exports.Set("lockFile", Napi::Function::New(env, lock_file_value, "lockFile"));
  exports.Set("peerUid", Napi::Function::New(env, peer_uid_value, "peerUid"));
  return exports;
}

}  // namespace
}  // namespace holdfast::binding

static Napi::Object init_addon(Napi::Env env, Napi::Object exports) { return holdfast::binding::init(env, exports); }

NODE_API_MODULE(holdfast, init_addon)
