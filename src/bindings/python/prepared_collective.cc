#include "bindings/python/prepared_collective.h"

#include "bindings/python/collecting.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/team.h"

namespace nb = nanobind;

namespace brant::python {

PreparedCollective::PreparedCollective(PythonTeam& team, nb::object team_object,
                                       std::shared_ptr<CollectiveArrays> arrays)
    : team_(team),
      team_object_(std::move(team_object)),
      arrays_(std::move(arrays)),
      call_(team.team().prepare(arrays_->call())) {}

nb::object PreparedCollective::start(const nb::object& timeout, const nb::object& stream) {
  team_.check_usable();
  if (!stream.is_none()) return team_.enqueue(*arrays_, stream, timeout, [&](Stream& on) { arrays_->take_again(&on); });
  if (under_way_)
    arrays_->refuse(Status::invalid_argument, "the prepared call is under way: await it before the next one");
  arrays_->clear_raised();
  arrays_->take_again(nullptr);
  auto [result, collecting] = make<Collecting>(team_, team_object_, arrays_);
  under_way_ = true;
  collecting->start_prepared(*this, nb::find(*this), timeout);
  return std::move(result);
}

void bind_prepared_collectives(nb::module_& module) {
  nb::class_<PreparedCollective>(module, "PreparedCall", nb::is_weak_referenceable())
      .def("start", &PreparedCollective::start, nb::kw_only(), nb::arg("timeout") = nb::none(),
           nb::arg("stream") = nb::none());
}

}  // namespace brant::python
