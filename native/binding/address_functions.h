#pragma once

#include <napi.h>

namespace holdfast::binding {

/// `listAddresses`, `leaseAddress`, `removeAddress`, `tellNeighbours`, `watchNeighbours`, `readClaim`, `unwatchNeighbours`:
/// interface_address.h and neighbour.h.
void set_address_functions(Napi::Env env, Napi::Object exports);

}  // namespace holdfast::binding
