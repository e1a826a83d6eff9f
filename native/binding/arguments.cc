#include "arguments.h"

#include <cmath>

namespace holdfast::binding {
namespace {

[[noreturn]] void refuse(const Napi::CallbackInfo& info, const char* name, const std::string& wanted) {
  throw Napi::TypeError::New(info.Env(), std::string(name) + " must be " + wanted);
}

}  // namespace

double integer_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name, double least, double most) {
  const Napi::Value value = info[index];
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (!(number >= least && number <= most) || std::floor(number) != number) {
    refuse(info, name, "an integer from " + std::to_string(std::int64_t(least)) + " to " + std::to_string(std::int64_t(most)));
  }
  return number;
}

std::string string_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  const Napi::Value value = info[index];
  if (!value.IsString()) refuse(info, name, "a string");
  std::string text = value.As<Napi::String>().Utf8Value();
  if (text.empty() || text.find('\0') != std::string::npos) refuse(info, name, "a string that is not empty, without NUL");
  return text;
}

Napi::Function function_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  const Napi::Value value = info[index];
  if (!value.IsFunction()) refuse(info, name, "a function");
  return value.As<Napi::Function>();
}

std::span<const std::uint8_t> bytes_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  const Napi::Value value = info[index];
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) refuse(info, name, "a Uint8Array");
  const auto array = value.As<Napi::Uint8Array>();
  return {array.Data(), array.ByteLength()};
}

}  // namespace holdfast::binding
