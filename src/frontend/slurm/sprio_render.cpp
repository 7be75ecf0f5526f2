#include "frontend/slurm/sprio_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "frontend/slurm/view_format.h"

namespace tutti::slurm {
namespace {

struct Weights {
  std::uint64_t age = 0, fair_share = 0, job_size = 0, partition = 0, qos = 0, association = 0;
  std::map<std::string, std::uint32_t> tres;
};

// A line is a job, or the weights themselves.
struct Line {
  const JobRow* row = nullptr;
  Weights weights;
};
using L = const Line&;
using Out = std::string&;

void number(Out out, std::uint64_t n) { fmt::format_to(std::back_inserter(out), "{}", n); }
void share(Out out, std::uint64_t part, std::uint64_t weight) {
  fmt::format_to(std::back_inserter(out), "{:.7f}",
                 weight == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(weight));
}

// One factor in both forms: its points (or the weight), and its share of the weight.
template <auto kPart, auto kWeight>
void points(L l, Out o) {
  number(o, l.row ? l.row->view->priority.*kPart : l.weights.*kWeight);
}
template <auto kPart, auto kWeight>
void shares(L l, Out o) {
  if (l.row)
    share(o, l.row->view->priority.*kPart, l.weights.*kWeight);
  else
    number(o, l.weights.*kWeight);
}
using P = PriorityParts;
using W = Weights;

// "cpu=12,gres/gpu=300": points of each resource, or the weights.
void tres(L l, Out o) {
  bool first = true;
  auto list = [&](const auto& amounts) {
    for (const auto& [resource, amount] : amounts) {
      fmt::format_to(std::back_inserter(o), "{}{}={}", first ? "" : ",", resource, amount);
      first = false;
    }
  };
  if (l.row)
    list(l.row->view->priority.tres);
  else if (l.weights.tres.empty())
    o += "(null)";
  else
    list(l.weights.tres);
}

struct Field {
  char letter;
  std::string_view header;
  void (*write)(L, Out);
};
constexpr std::array kFields{
    Field{'i', "JOBID",
          [](L l, Out o) {
            if (l.row)
              number(o, l.row->job_id());
            else
              o += "Weights";
          }},
    Field{'r', "PARTITION",
          [](L l, Out o) {
            if (l.row) o += l.row->view->partition;
          }},
    Field{'u', "USER",
          [](L l, Out o) {
            if (l.row) o += l.row->workload().user;
          }},
    Field{'o', "ACCOUNT",
          [](L l, Out o) {
            if (l.row) o += l.row->workload().account;
          }},
    Field{'n', "QOSNAME",
          [](L l, Out o) {
            if (l.row) o += l.row->workload().qos;
          }},
    Field{'Y', "PRIORITY",
          [](L l, Out o) {
            if (l.row) number(o, shown_priority(*l.row));
          }},
    Field{'y', "PRIORITY",
          [](L l, Out o) {
            if (l.row)
              fmt::format_to(std::back_inserter(o), "{:.14f}",
                             static_cast<double>(shown_priority(*l.row)) / 4294967295.0);
          }},
    Field{'S', "SITE", [](L l, Out o) { o += l.row ? '0' : '1'; }},
    Field{'A', "AGE", points<&P::age, &W::age>},
    Field{'a', "AGE", shares<&P::age, &W::age>},
    Field{'B', "ASSOC", points<&P::association, &W::association>},
    Field{'b', "ASSOC", shares<&P::association, &W::association>},
    Field{'F', "FAIRSHARE", points<&P::fair_share, &W::fair_share>},
    Field{'f', "FAIRSHARE", shares<&P::fair_share, &W::fair_share>},
    Field{'J', "JOBSIZE", points<&P::job_size, &W::job_size>},
    Field{'j', "JOBSIZE", shares<&P::job_size, &W::job_size>},
    Field{'P', "PARTITION", points<&P::partition, &W::partition>},
    Field{'p', "PARTITION", shares<&P::partition, &W::partition>},
    Field{'Q', "QOS", points<&P::qos, &W::qos>},
    Field{'q', "QOS", shares<&P::qos, &W::qos>},
    Field{'N', "NICE",
          [](L l, Out o) {
            if (l.row) fmt::format_to(std::back_inserter(o), "{}", l.row->view->priority.nice);
          }},
    Field{'T', "TRES", tres}, Field{'t', "TRES", tres},
    Field{'c', "CLUSTER", [](L, Out) {}},
};

std::uint32_t field_by_letter(char letter) {
  for (std::size_t i = 0; i < kFields.size(); ++i)
    if (kFields[i].letter == letter) return static_cast<std::uint32_t>(i);
  return kTextOnly;
}

std::string default_format(const SprioOptions& o, const Weights& w) {
  if (o.long_form)
    return "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T";
  std::string out = o.normalized ? "%.15i %9r %.16y" : "%.15i %9r %.10Y %.10S";
  auto add = [&](std::uint64_t weight, char points_letter, char share_letter) {
    if (weight == 0) return;
    out += " %.10";
    out += o.normalized ? share_letter : points_letter;
  };
  add(w.age, 'A', 'a');
  add(w.association, 'B', 'b');
  add(w.fair_share, 'F', 'f');
  add(w.job_size, 'J', 'j');
  add(w.partition, 'P', 'p');
  add(w.qos, 'Q', 'q');
  if (!w.tres.empty()) out += " %.20T";
  return out;
}

// Jobs that only wait for room: held ones and those before their time have no priority to show.
bool is_eligible(const JobRow& row) {
  if (!row.is_pending() || row.on_hold()) return false;
  std::string_view why = job_reason(row);
  return why != "BeginTime" && why != "Dependency" && why != "DependencyNeverSatisfied";
}

void print_line(std::string& out, const ParsedFormat& format, const Line* line) {
  std::string cell;
  for (const FormatColumn& column : format.columns) {
    if (column.field != kTextOnly) {
      cell.clear();
      if (line)
        kFields[column.field].write(*line, cell);
      else
        cell = kFields[column.field].header;
      append_cell(out, cell, column.shape);
    }
    out += column.suffix;
  }
  out += '\n';
}

}  // namespace

Output render_sprio(const StateView& view, const SprioOptions& o) {
  Output out;
  const PriorityWeights given = view.spec ? view.spec->priority : PriorityWeights{};
  Weights weights{given.age, given.fair_share, given.job_size, given.partition, given.qos,
                  given.association, given.tres};
  std::string text = o.format.empty() ? default_format(o, weights) : o.format;
  ParsedFormat format = parse_letter_format(text, field_by_letter, "iruYSAFJPQ");
  for (const std::string& word : format.unknown)
    out.errors += fmt::format("sprio: error: Invalid job format specification: {}\n", word);
  std::vector<JobRow> rows;
  if (!o.weights) {
    rows = job_rows(view, ArrayRows::kFolded);
    std::erase_if(rows,
                  [&](const JobRow& row) { return !is_eligible(row) || !passes(row, o.filter); });
    if (rows.empty() && (!o.filter.jobs.empty() || !o.filter.users.empty())) {
      out.text = "Unable to find jobs matching user/id(s) specified\n";
      return out;
    }
    sort_jobs(rows, o.sort.empty() ? std::string_view("i") : std::string_view(o.sort), view,
              TimeText());
  }
  if (!o.no_header) print_line(out.text, format, nullptr);
  if (o.weights) {
    Line line{nullptr, weights};
    print_line(out.text, format, &line);
  }
  for (const JobRow& row : rows) {
    Line line{&row, weights};
    print_line(out.text, format, &line);
  }
  return out;
}

}  // namespace tutti::slurm
