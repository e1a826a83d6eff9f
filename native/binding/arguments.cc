#include "arguments.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cmath>
#include <cstring>

namespace holdfast::binding {
namespace {

[[noreturn]] void refuse(Napi::Env env, const char* name, const std::string& wanted) {
  throw Napi::TypeError::New(env, std::string(name) + " must be " + wanted);
}

double checked_integer(const Napi::Value& value, const char* name, double least, double most) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (!(number >= least && number <= most) || std::floor(number) != number) {
    refuse(value.Env(), name, "an integer from " + std::to_string(std::int64_t(least)) + " to " + std::to_string(std::int64_t(most)));
  }
  return number;
}

}  // namespace

double integer_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name, double least, double most) {
  return checked_integer(info[index], name, least, most);
}

Napi::Object object_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  const Napi::Value value = info[index];
  if (!value.IsObject()) refuse(info.Env(), name, "an object");
  return value.As<Napi::Object>();
}

double integer_property(const Napi::Object& object, const char* name, double least, double most, double otherwise) {
  const Napi::Value value = object.Get(name);
  return value.IsUndefined() ? otherwise : checked_integer(value, name, least, most);
}

double number_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  const Napi::Value value = info[index];
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (!std::isfinite(number)) refuse(info.Env(), name, "a number");
  return number;
}

std::string string_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  const Napi::Value value = info[index];
  if (!value.IsString()) refuse(info.Env(), name, "a string");
  std::string text = value.As<Napi::String>().Utf8Value();
  if (text.empty() || text.find('\0') != std::string::npos) refuse(info.Env(), name, "a string that is not empty, without NUL");
  return text;
}

Napi::Function function_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  const Napi::Value value = info[index];
  if (!value.IsFunction()) refuse(info.Env(), name, "a function");
  return value.As<Napi::Function>();
}

net::SocketAddress address_argument(const Napi::CallbackInfo& info, std::size_t index) {
  const std::string text = string_argument(info, index, "address");
  net::SocketAddress address;
  address.family = text.find(':') == std::string::npos ? net::Family::ipv4 : net::Family::ipv6;
  const int family = address.family == net::Family::ipv4 ? AF_INET : AF_INET6;
  if (::inet_pton(family, text.c_str(), address.bytes.data()) != 1) throw Napi::TypeError::New(info.Env(), "address must be an IP address");
  return address;
}

std::span<const std::uint8_t> bytes_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  const Napi::Value value = info[index];
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) refuse(info.Env(), name, "a Uint8Array");
  const auto array = value.As<Napi::Uint8Array>();
  return {array.Data(), array.ByteLength()};
}

Napi::Error errno_error(Napi::Env env, const char* call, int error) {
  Napi::Error value = Napi::Error::New(env, std::string(call) + ": " + std::strerror(error));
  // strerrorname_np calls it EAGAIN, which is the same number.
  const char* name = error == EWOULDBLOCK ? "EWOULDBLOCK" : ::strerrorname_np(error);
  value.Set("code", Napi::String::New(env, name == nullptr ? "UNKNOWN" : name));
  value.Set("errno", Napi::Number::New(env, -error));
  return value;
}

}  // namespace holdfast::binding
