#pragma once

#include <napi.h>

#include "nft_plan.h"
#include "nft_reply.h"

namespace holdfast::binding {

/// Throws a TypeError that names the operation and what is wrong with it.
nft::Plan plan_value(const Napi::Value& value);

/// One of a dump; without what its kind does not have.
Napi::Object object_value(Napi::Env env, const nft::Object& object);

}  // namespace holdfast::binding
