#pragma once

#include <napi.h>

#include <cstdint>
#include <span>
#include <string>

#include "socket_address.h"

namespace holdfast::binding {

/// Each throws a TypeError that names the argument and what it must be.
double integer_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name, double least, double most);
Napi::Object object_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name);
/// `otherwise` when it is undefined.
double integer_property(const Napi::Object& object, const char* name, double least, double most, double otherwise);
/// With fractions.
double number_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name);
std::string string_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name);
Napi::Function function_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name);
/// An IP address in text, without a port.
net::SocketAddress address_argument(const Napi::CallbackInfo& info, std::size_t index);
/// Valid until control returns to JavaScript.
std::span<const std::uint8_t> bytes_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name);

/// An Error with the errno's name as `code`, like those of node:fs.
Napi::Error errno_error(Napi::Env env, const char* call, int error);

}  // namespace holdfast::binding
