#pragma once

#include <napi.h>

#include <string>

namespace holdfast::binding {

/// An Error with the errno's name as `code`, like those of node:fs.
Napi::Error errno_error(Napi::Env env, const std::string& call, int error);

}  // namespace holdfast::binding
