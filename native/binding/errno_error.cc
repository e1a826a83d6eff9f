#include "errno_error.h"

#include <cerrno>
#include <cstring>

namespace holdfast::binding {

Napi::Error errno_error(Napi::Env env, const std::string& call, int error) {
  Napi::Error value = Napi::Error::New(env, call + ": " + std::strerror(error));
  // strerrorname_np calls it EAGAIN, which is the same number.
  const char* name = error == EWOULDBLOCK ? "EWOULDBLOCK" : ::strerrorname_np(error);
  value.Set("code", Napi::String::New(env, name == nullptr ? "UNKNOWN" : name));
  value.Set("errno", Napi::Number::New(env, -error));
  return value;
}

}  // namespace holdfast::binding
