#include "wire/detail/http_parser.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>
#include <exception>
#include <limits>

namespace tutti::wire::detail {

namespace http = boost::beast::http;

struct RequestParser::Impl {
  using Parser = http::request_parser<http::string_body>;
  std::size_t header_max = 0;
  std::size_t body_max = 0;
  std::optional<Parser> parser;
  bool begun = false;

  void renew() {
    parser.emplace();
    parser->eager(true);
    parser->header_limit(static_cast<std::uint32_t>(
        std::min<std::size_t>(header_max, std::numeric_limits<std::uint32_t>::max())));
    parser->body_limit(body_max);
    begun = false;
  }
};

namespace {

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

void parse_query(std::string_view text, Request& request, bool& valid) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    std::string name;
    std::string value;
    valid = valid && decode_url(pair.substr(0, equals), UrlPart::kQuery, name) &&
            decode_url(pair.substr(std::min(equals + 1, pair.size())), UrlPart::kQuery, value);
    request.query.emplace(std::move(name), std::move(value));
  }
}

}  // namespace

RequestParser::RequestParser(std::size_t header_bytes_max, std::size_t body_bytes_max)
    : impl_(std::make_unique<Impl>()) {
  impl_->header_max = header_bytes_max;
  impl_->body_max = body_bytes_max;
  impl_->renew();
}

RequestParser::~RequestParser() = default;

void RequestParser::reset() { impl_->renew(); }
bool RequestParser::begun() const { return impl_->begun; }
bool RequestParser::keep_alive() const { return impl_->parser->keep_alive(); }

bool RequestParser::wants_continue() const {
  const auto& parser = *impl_->parser;
  return parser.is_header_done() && !parser.is_done() && parser.get().version() >= 11 &&
         equal_ignoring_case(view(parser.get()[http::field::expect]), "100-continue");
}

bool RequestParser::is_upgrade() const {
  const auto& head = impl_->parser->get();
  return head.version() >= 11 &&
         http::token_list{head[http::field::connection]}.exists("upgrade") &&
         equal_ignoring_case(view(head[http::field::upgrade]), "websocket");
}

RequestParser::Step RequestParser::feed(std::string_view bytes) {
  Step step;
  impl_->begun = impl_->begun || !bytes.empty();
  boost::beast::error_code error;
  try {
    step.consumed = impl_->parser->put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  } catch (const std::exception& problem) {
    step.error_status = 413;
    step.error = problem.what();
    return step;
  }
  step.done = !error && impl_->parser->is_done();
  if (!error || error == http::error::need_more) return step;
  step.error = error.message();
  step.error_status = error == http::error::body_limit     ? 413
                      : error == http::error::header_limit ? 431
                                                           : 400;
  return step;
}

bool RequestParser::take(Request& request) {
  auto& message = impl_->parser->get();
  request.method = view(message.method_string());
  request.target = view(message.target());
  for (const auto& field : message) {
    request.headers.emplace_back(view(field.name_string()), view(field.value()));
  }
  request.body = std::move(message.body());
  const std::string_view authorization = view(message[http::field::authorization]);
  if (authorization.size() > 7 && equal_ignoring_case(authorization.substr(0, 7), "bearer ")) {
    request.peer.token = authorization.substr(7);
  }
  std::string_view target = request.target;
  if (target.starts_with("http://")) {  // absolute form, as proxies send it
    const std::size_t slash = target.find('/', 7);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  const std::size_t question = std::min(target.find('?'), target.size());
  bool valid = decode_url(target.substr(0, question), UrlPart::kPath, request.path);
  if (question < target.size()) parse_query(target.substr(question + 1), request, valid);
  return valid && (request.path.starts_with('/') || request.path == "*");
}

}  // namespace tutti::wire::detail
