#include "nft_values.h"

#include <algorithm>
#include <cmath>

#include "arguments.h"

namespace holdfast::binding {
namespace {

constexpr double kMost32 = 4294967295.0;

[[noreturn]] void refuse(Napi::Env env, const std::string& problem) { throw Napi::TypeError::New(env, problem); }

std::uint32_t number(const Napi::Object& from, const char* name) {
  return static_cast<std::uint32_t>(integer_property(from, name, 0, kMost32, 0));
}

/// Up to NFT_NAME_MAXLEN with its NUL.
std::string text(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (value.IsUndefined()) return "";
  std::string text = value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
  if (text.empty() || text.size() > 255 || text.find('\0') != std::string::npos) {
    refuse(from.Env(), std::string(name) + " must be a string of 1 to 255 bytes without NUL");
  }
  return text;
}

Napi::Array list(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsArray()) refuse(from.Env(), std::string(name) + " must be an array");
  return value.As<Napi::Array>();
}

nft::Bytes bytes(const Napi::Value& value, const char* name) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) refuse(value.Env(), std::string(name) + " must be a Uint8Array");
  const auto array = value.As<Napi::Uint8Array>();
  return {array.Data(), array.Data() + array.ByteLength()};
}

nft::Value value_of(const Napi::Value& value) {
  if (value.IsString()) return value.As<Napi::String>().Utf8Value();
  if (value.IsTypedArray()) return bytes(value, "a value");
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  if (number < 0 || number > 9007199254740991.0 || std::floor(number) != number) refuse(value.Env(), "a value must be a whole number, a string or a Uint8Array");
  return static_cast<std::uint64_t>(number);
}

nft::Rule rule_of(const Napi::Object& from) {
  nft::Rule rule;
  const Napi::Array expressions = list(from, "expressions");
  for (std::uint32_t i = 0; i < expressions.Length(); ++i) {
    const Napi::Value item = expressions.Get(i);
    if (!item.IsArray() || item.As<Napi::Array>().Length() == 0) refuse(from.Env(), "an expression must be an array of its name and its values");
    const auto array = item.As<Napi::Array>();
    const Napi::Value name = array.Get(0U);
    if (!name.IsString()) refuse(from.Env(), "an expression must be an array of its name and its values");
    nft::Expression expression{name.As<Napi::String>().Utf8Value(), {}};
    for (std::uint32_t at = 1; at < array.Length(); ++at) expression.values.push_back(value_of(array.Get(at)));
    rule.expressions.push_back(std::move(expression));
  }
  return rule;
}

nft::Chain chain_of(const Napi::Object& from) {
  if (from.Get("hook").IsUndefined()) return {};
  return {nft::Hook{text(from, "type"), number(from, "hook"), static_cast<std::int32_t>(integer_property(from, "priority", -2147483648.0, 2147483647.0, 0)), text(from, "device")}};
}

nft::Set set_of(const Napi::Object& from) {
  nft::Set set;
  set.flags = number(from, "flags");
  set.key_type = number(from, "keyType");
  set.data_type = number(from, "dataType");
  set.data_bytes = number(from, "dataBytes");
  set.size = number(from, "size");
  set.timeout_ms = static_cast<std::uint64_t>(integer_property(from, "timeoutMs", 0, 9007199254740991.0, 0));
  const Napi::Array fields = list(from, "fields");
  for (std::uint32_t i = 0; i < fields.Length(); ++i) {
    const Napi::Value field = fields.Get(i);
    const double length = field.IsNumber() ? field.As<Napi::Number>().DoubleValue() : 0;
    if (!(length >= 1 && length <= 64) || std::floor(length) != length) refuse(from.Env(), "a field must be an integer from 1 to 64");
    set.fields.push_back(static_cast<std::uint32_t>(length));
  }
  return set;
}

/// Whether the chains of a verdict map are jumped to.
bool jump_of(const Napi::Object& from) {
  const Napi::Value verdict = from.Get("verdict");
  if (verdict.IsUndefined()) return false;
  const std::string name = verdict.IsString() ? verdict.As<Napi::String>().Utf8Value() : "";
  if (name != "goto" && name != "jump") refuse(from.Env(), "verdict must be goto or jump");
  return name == "jump";
}

nft::Elements elements_of(const Napi::Object& from) {
  nft::Elements elements;
  elements.key_bytes = static_cast<std::uint32_t>(integer_property(from, "keyBytes", 1, 64, 0));
  elements.data_bytes = static_cast<std::uint32_t>(integer_property(from, "dataBytes", 0, 64, 0));
  elements.packed = bytes(from.Get("packed"), "packed");
  elements.timeout_ms = static_cast<std::uint64_t>(integer_property(from, "timeoutMs", 0, 9007199254740991.0, 0));
  elements.jump = jump_of(from);
  if (from.Get("chains").IsUndefined()) return elements;
  const Napi::Array chains = list(from, "chains");
  for (std::uint32_t i = 0; i < chains.Length(); ++i) {
    const Napi::Value chain = chains.Get(i);
    if (!chain.IsString()) refuse(from.Env(), "chains must be strings");
    elements.chains.push_back(chain.As<Napi::String>().Utf8Value());
  }
  return elements;
}

nft::Operation operation_of(const Napi::Object& from) {
  nft::Operation operation{text(from, "table"), text(from, "chain"), text(from, "set"), nft::Remove{}, false, text(from, "counter")};
  if (operation.table.empty()) refuse(from.Env(), "table must be a string of 1 to 255 bytes without NUL");
  const Napi::Value kind = from.Get("kind");
  const std::string name = kind.IsString() ? kind.As<Napi::String>().Utf8Value() : "";
  if (name == "table") operation.what = nft::Table{number(from, "flags")};
  else if (name == "chain") operation.what = chain_of(from);
  else if (name == "rule") operation.what = rule_of(from);
  else if (name == "set") operation.what = set_of(from);
  else if (name == "add-elements" || name == "delete-elements") operation.what = elements_of(from);
  else if (name == "counter") operation.what = nft::Counter{};
  else if (name == "flush") operation.what = nft::Flush{};
  else if (name == "remove") operation.what = nft::Remove{static_cast<std::uint64_t>(integer_property(from, "handle", 0, 9007199254740991.0, 0))};
  else refuse(from.Env(), "kind must be table, chain, rule, set, counter, add-elements, delete-elements, flush or remove");
  operation.remove = name == "delete-elements";
  return operation;
}

}  // namespace

nft::Plan plan_value(const Napi::Value& value) {
  if (!value.IsArray()) refuse(value.Env(), "plan must be an array");
  const auto array = value.As<Napi::Array>();
  nft::Plan plan;
  for (std::uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value item = array.Get(i);
    if (!item.IsObject()) refuse(value.Env(), "operation " + std::to_string(i) + " must be an object");
    try {
      plan.push_back(operation_of(item.As<Napi::Object>()));
    } catch (const Napi::Error& error) {
      refuse(value.Env(), "operation " + std::to_string(i) + ": " + error.Message());
    }
  }
  return plan;
}

Napi::Object object_value(Napi::Env env, const nft::Object& object) {
  Napi::Object value = Napi::Object::New(env);
  const auto put = [&](const char* name, const std::string& text) {
    if (!text.empty()) value.Set(name, text);
  };
  const auto put_bytes = [&](const char* name, const nft::Bytes& bytes) {
    if (bytes.empty()) return;
    auto array = Napi::Uint8Array::New(env, bytes.size());
    std::copy(bytes.begin(), bytes.end(), array.Data());
    value.Set(name, array);
  };
  value.Set("family", Napi::Number::New(env, object.family));
  put("table", object.table);
  put("chain", object.chain);
  put("set", object.set);
  if (!object.counter.empty()) {
    put("counter", object.counter);
    value.Set("packets", Napi::Number::New(env, static_cast<double>(object.packets)));
    value.Set("bytes", Napi::Number::New(env, static_cast<double>(object.bytes)));
  }
  put("device", object.device);
  if (object.expires_ms != 0) value.Set("expiresMs", Napi::Number::New(env, static_cast<double>(object.expires_ms)));
  value.Set("flags", Napi::Number::New(env, object.flags));
  if (object.owner != 0) value.Set("owner", Napi::Number::New(env, object.owner));
  if (object.handle != 0) value.Set("handle", Napi::Number::New(env, static_cast<double>(object.handle)));
  if (object.hook) {
    put("type", object.type);
    value.Set("hook", Napi::Number::New(env, *object.hook));
    value.Set("priority", Napi::Number::New(env, object.priority));
    value.Set("policy", Napi::Number::New(env, object.policy));
  }
  put_bytes("key", object.key);
  put_bytes("data", object.data);
  put_bytes("expressions", object.expressions);
  return value;
}

}  // namespace holdfast::binding
