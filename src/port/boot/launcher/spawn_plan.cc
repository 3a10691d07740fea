#include "port/boot/launcher/spawn_plan.h"

#include "base/bytes.h"
#include "brant/base/status.h"
#include "port/boot/launcher/frame.h"

namespace brant::port::launcher {

namespace {

void write(ByteWriter& writer, const std::vector<std::string>& texts) {
  writer.number(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) writer.text(text);
}

std::vector<std::string> read(ByteReader& reader) {
  std::vector<std::string> texts;
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && !reader.failed(); ++i) texts.push_back(reader.text());
  return texts;
}

}  // namespace

std::vector<std::byte> pack(const SpawnPlan& plan) {
  ByteWriter writer;
  writer.number(kMagic);
  writer.number(kProtocolVersion);
  writer.text(plan.name);
  writer.text(plan.port);
  writer.text(plan.folder);
  write(writer, plan.environment);
  writer.number(static_cast<std::uint32_t>(plan.parts.size()));
  for (const SpawnPlan::Part& part : plan.parts) {
    write(writer, part.command);
    writer.number(part.processes);
    writer.text(part.folder);
    writer.text(part.path);
    write(writer, part.variables);
  }
  return writer.bytes();
}

SpawnPlan unpack_spawn_plan(std::span<const std::byte> packed) {
  ByteReader reader(packed);
  const bool known = reader.number<std::uint32_t>() == kMagic;
  if (known && reader.number<std::uint32_t>() != kProtocolVersion)
    throw Error(Status::version_mismatch, "the program that spawns and `brant` are of different releases");
  SpawnPlan plan;
  plan.name = reader.text();
  plan.port = reader.text();
  plan.folder = reader.text();
  plan.environment = read(reader);
  const auto count = reader.number<std::uint32_t>();
  bool sound = known && count != 0;
  for (std::uint32_t i = 0; i < count && !reader.failed(); ++i) {
    SpawnPlan::Part& part = plan.parts.emplace_back();
    part.command = read(reader);
    part.processes = reader.number<std::int32_t>();
    part.folder = reader.text();
    part.path = reader.text();
    part.variables = read(reader);
    sound = sound && !part.command.empty() && part.processes >= 0 && part.processes <= kMaxRanks;
  }
  if (!sound || reader.failed()) throw Error(Status::invalid_argument, "the plan of what is to be spawned is damaged");
  return plan;
}

}  // namespace brant::port::launcher
