#pragma once

#include <cstddef>
#include <string_view>

#include "brant/ops/lane/data_arguments.h"
#include "ops/lane/data_lanes.h"

namespace brant::lane {

/// Takes over the sources of a call's data arguments, in their order: finds out their kinds, and says in `metas` what
/// the receiver must know. Errors name the call as `owner::name`, or `name`. Throws wrong_kind, invalid_argument (past
/// the end of an allocation), limit_reached, no_memory; then none is taken over.
DataOrigin* take_sources(DataLanes& lanes, std::string_view owner, std::string_view name, detail::DataSource* sources,
                         DataMeta* metas, std::size_t count);

}  // namespace brant::lane
