#include "sim/serving/arrivals/lengths.h"

#include "sim/foundation/config/choose.h"

#include <fmt/format.h>

namespace specsim::arrivals {

decltype(LengthsEntry::make) from_arguments(
    std::string what, std::function<std::unique_ptr<LengthDistribution>(const config::Arguments&, Diagnostics&)> make) {
  return [what = std::move(what), make = std::move(make)](const config::Value& value, const config::PartInfo& info,
                                                          Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
    const std::size_t before = diagnostics.list().size();
    const config::Arguments arguments = config::read_arguments(value, info.parameters, {}, what, diagnostics);
    return diagnostics.list().size() == before ? make(arguments, diagnostics) : nullptr;
  };
}

std::unique_ptr<LengthDistribution> read_lengths(const config::Value& value, const std::string& what, Diagnostics& diagnostics) {
  const config::Value named = config::spelled_out(value, "fixed");
  if (!named.is_map() || named.fields.size() != 1) {
    diagnostics.add(value.where,
                    fmt::format("{} is {}, allowed: one of {{{}}} with its parameters, as {{lognormal: {{mean: 1155, cv: 1.1}}}}",
                                what, config::description_of_found(value), length_distributions().names()));
    return nullptr;
  }
  const config::Field& field = named.fields.front();
  const LengthsEntry* const entry = length_distributions().find(field.key, field.where, diagnostics);
  return entry == nullptr ? nullptr : entry->make(field.value, entry->info, diagnostics);
}

}  // namespace specsim::arrivals
