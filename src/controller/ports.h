// What the controller needs from outside and what it is asked from outside, as plain interfaces.
// The wire implements them; tests use fakes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/time.h"
#include "engine/engine.h"

namespace tutti::controller {

// Who asks. An operator may act on everybody's work; without a verified identity nothing is allowed.
struct Caller {
  bool known = false;
  bool is_operator = false;
  std::uint32_t uid = 0, gid = 0;
};

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
};
using Reply = std::function<void(HttpAnswer)>;

struct ApiCall {
  Caller caller;
  std::string method, path, body;
  std::map<std::string, std::string> query;
  Reply reply;  // called once, on any thread
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;  // wall clock: goes into records
};

// Login names and groups of this machine.
class Users {
 public:
  virtual ~Users() = default;
  virtual std::string user_name(std::uint32_t uid) = 0;   // "" = no such user
  virtual std::string group_name(std::uint32_t gid) = 0;
  virtual bool in_group(std::uint32_t uid, const std::string& group) = 0;
};

}  // namespace tutti::controller
