// The page: plain HTML and SVG, readable without a network. Colours keep apart for people who see
// them differently (Okabe and Ito's palette).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulator/report.h"

namespace tutti::simulator {

namespace {

constexpr std::array kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                              "#E69F00", "#56B4E9", "#999999", "#000000"};
const char* colour(std::size_t index) { return kColours[index % kColours.size()]; }

constexpr double kWidth = 900, kHeight = 220, kLeft = 60, kBottom = 30, kTop = 10;

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string axis_time(double seconds) {
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 3 * 86'400) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} d", seconds / 86'400);
}

class Plot {
 public:
  Plot(double x_most, double y_most)
      : x_most_(std::max(x_most, 1e-9)), y_most_(std::max(y_most, 1e-9)) {}

  double x(double value) const { return kLeft + value / x_most_ * (kWidth - kLeft - 10); }
  double y(double value) const {
    return kHeight - kBottom - value / y_most_ * (kHeight - kBottom - kTop);
  }
  void axes(const std::string& y_label) {
    out_ += fmt::format(
        "<line class=a x1={0} y1={1} x2={2} y2={1} /><line class=a x1={0} y1={3} "
        "x2={0} y2={1} />",
        kLeft, kHeight - kBottom, kWidth - 10, kTop);
    for (int i = 0; i <= 4; ++i) {
      const double part = i / 4.0;
      out_ += fmt::format("<text x={:.1f} y={:.1f} text-anchor=middle>{}</text>", x(part * x_most_),
                          kHeight - 10, axis_time(part * x_most_));
      out_ += fmt::format("<text x={:.1f} y={:.1f} text-anchor=end>{:.4g}</text>", kLeft - 6,
                          y(part * y_most_) + 4, part * y_most_);
    }
    out_ +=
        fmt::format("<text x=12 y={} transform=\"rotate(-90 12 {})\" text-anchor=middle>{}</text>",
                    kHeight / 2, kHeight / 2, escape(y_label));
  }
  // A value holds until the next point.
  void steps(const std::vector<std::pair<double, double>>& points, const char* stroke) {
    if (points.empty()) return;
    std::string path;
    for (const auto& [at, value] : points)
      path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x(at), y(value))
                           : fmt::format("H{:.1f}V{:.1f}", x(at), y(value));
    out_ += fmt::format("<path d=\"{}\" fill=none stroke=\"{}\" stroke-width=1.5 />", path, stroke);
  }
  std::string take() const {
    return fmt::format("<svg viewBox=\"0 0 {} {}\" role=img>{}</svg>\n", kWidth, kHeight, out_);
  }

 private:
  double x_most_, y_most_;
  std::string out_;
};

std::string legend(const Comparison& all) {
  std::string out = "<p class=l>";
  for (std::size_t i = 0; i < all.profiles.size(); ++i)
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", colour(i),
                       escape(all.profiles[i].profile));
  return out + "</p>\n";
}

// The mean of a series over each of some hundred equal pieces of time.
template <class Value>
std::vector<std::pair<double, double>> thin(const std::vector<Sample>& samples, Instant begin,
                                            Instant end, Value value) {
  constexpr std::size_t kPieces = 300;
  std::vector<std::pair<double, double>> out;
  if (samples.empty() || end <= begin) return out;
  const double length = static_cast<double>((end - begin).ms()) / kPieces;
  std::size_t next = 0;
  double now = 0;
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    const double until = length * static_cast<double>(piece + 1);
    double sum = 0, at = length * static_cast<double>(piece);
    for (; next < samples.size() && static_cast<double>((samples[next].at - begin).ms()) < until;
         ++next) {
      const double time = std::max(static_cast<double>((samples[next].at - begin).ms()), at);
      sum += now * (time - at);
      at = time;
      now = value(samples[next]);
    }
    sum += now * (until - at);
    out.emplace_back(length * static_cast<double>(piece) / 1000, sum / length);
  }
  return out;
}

template <class Value>
std::string series(const Comparison& all, const std::string& label, Value value) {
  Instant begin = Instant::never(), end;
  for (const auto& samples : all.samples) {
    if (samples.empty()) continue;
    begin = std::min(begin, samples.front().at);
    end = std::max(end, samples.back().at);
  }
  std::vector<std::vector<std::pair<double, double>>> lines;
  double most = 0;
  for (const auto& samples : all.samples) {
    lines.push_back(thin(samples, begin, end, value));
    for (const auto& [at, amount] : lines.back()) most = std::max(most, amount);
  }
  if (end <= begin) return {};
  Plot plot(static_cast<double>((end - begin).ms()) / 1000, most);
  plot.axes(label);
  for (std::size_t i = 0; i < lines.size(); ++i) plot.steps(lines[i], colour(i));
  return plot.take() + legend(all);
}

// One bar per profile, its levels side by side.
std::string ledger_bars(const Comparison& all) {
  std::string out = "<table class=b>";
  std::vector<std::string> names;
  for (const Metrics& metrics : all.profiles) {
    double sum = 0;
    for (const LevelHours& level : metrics.levels) {
      sum += level.hours;
      if (std::find(names.begin(), names.end(), level.level) == names.end())
        names.push_back(level.level);
    }
    out += fmt::format("<tr><th>{}</th><td><div class=s>", escape(metrics.profile));
    for (const LevelHours& level : metrics.levels) {
      auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), level.level) -
                                         names.begin());
      out += fmt::format("<b style=\"width:{:.3f}%;background:{}\" title=\"{}: {:.1f}\"></b>",
                         sum == 0 ? 0 : 100 * level.hours / sum, colour(at), escape(level.level),
                         level.hours);
    }
    out += "</div></td></tr>";
  }
  out += "</table><p class=l>";
  for (std::size_t i = 0; i < names.size(); ++i)
    out +=
        fmt::format("<span><i style=\"background:{}\"></i>{}</span>", colour(i), escape(names[i]));
  return out + "</p>\n";
}

std::string wait_bars(const Comparison& all) {
  double most = 0;
  for (const Metrics& metrics : all.profiles)
    for (const SizeClass& size : metrics.classes) most = std::max(most, size.wait.mean);
  std::string out = "<table class=b>";
  for (const SizeClass& size : all.profiles.front().classes) {
    out += fmt::format("<tr><th>{} {}s<br><small>{} jobs</small></th><td>", escape(size.name),
                       escape(all.profiles.front().unit), size.jobs);
    for (std::size_t i = 0; i < all.profiles.size(); ++i)
      for (const SizeClass& other : all.profiles[i].classes)
        if (other.name == size.name)
          out += fmt::format("<div class=w><b style=\"width:{:.2f}%;background:{}\"></b>{}</div>",
                             most == 0 ? 0 : 80 * other.wait.mean / most, colour(i),
                             axis_time(other.wait.mean));
    out += "</td></tr>";
  }
  return out + "</table>\n" + legend(all);
}

constexpr std::string_view kStyle = R"(body{font:15px/1.5 system-ui,sans-serif;max-width:960px;
margin:2em auto;padding:0 1em;color:#222}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
svg{width:100%;font-size:11px}.a{stroke:#888}pre{overflow-x:auto;background:#f6f6f6;padding:1em;
font-size:13px}.v{font-size:1.1em;border-left:4px solid #0072B2;padding-left:1em}
.l span{margin-right:1.2em}.l i{display:inline-block;width:.9em;height:.9em;margin-right:.4em}
.b{width:100%;border-spacing:0 6px}.b th{text-align:right;padding-right:1em;font-weight:normal;
width:9em}.s{display:flex;height:1.6em}.s b{display:block}.w{display:flex;align-items:center;
font-size:12px;gap:.5em}.w b{display:block;height:.8em})";

}  // namespace

std::string render_html(const Comparison& comparison) {
  std::string out = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8><title>{0}</title><style>{1}</style>\n"
      "<h1>Which scheduling fits this load?</h1>\n<p>Jobs of <b>{0}</b> on <b>{2}</b>.</p>\n",
      escape(comparison.trace), kStyle, escape(comparison.cluster));
  if (comparison.profiles.empty()) return out + "</html>\n";
  if (std::string text = verdict(comparison); !text.empty())
    out += fmt::format("<p class=v>{}</p>\n", escape(text));
  const std::string unit = comparison.profiles.front().unit;
  out += fmt::format("<h2>{}s held over time</h2>\n", unit);
  out += series(comparison, unit + "s",
                [](const Sample& s) { return static_cast<double>(s.held) / 1000; });
  out += "<h2>Jobs that wait</h2>\n";
  out += series(comparison, "jobs", [](const Sample& s) { return static_cast<double>(s.waiting); });
  out += "<h2>Mean wait by size</h2>\n" + wait_bars(comparison);
  out += fmt::format("<h2>Where the {}-hours went</h2>\n", unit) + ledger_bars(comparison);
  out += "<h2>All figures</h2>\n<pre>" + escape(render_table(comparison, 0)) + "</pre></html>\n";
  return out;
}

}  // namespace tutti::simulator
