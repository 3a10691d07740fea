// Each case is one mistake in what C++ shows to Python; the compiler must refuse it with a sentence of ours.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "brant/chare.h"
#include "brant/chare/expose.h"
#include "brant/chare/python.h"

struct Particle {
  double mass = 0;
  void serialize(auto& archive) { archive(mass); }
};

class Block : public brant::Chare<Block, brant::Index<2>> {
 public:
  void fine(std::optional<std::vector<double>>, std::span<const float>) {}
  void takes_particle(Particle) {}
  std::vector<Particle> gives_particles() { return {}; }
  void takes_gaps(std::vector<std::optional<int>>) {}
};

class Lonely : public brant::Chare<Lonely, brant::Single> {};

#if CASE == 0
const auto exposed = brant::expose<Block>("Block").entry<&Block::fine>();
#elif CASE == 1
const auto exposed = brant::expose<Block>("Block").entry<&Block::takes_particle>();
#elif CASE == 2
const auto exposed = brant::expose<Block>("Block").entry<&Block::gives_particles>();
#elif CASE == 3
const auto exposed = brant::expose<Block>("Block").entry<&Block::takes_gaps>();
#elif CASE == 4
const auto exposed = brant::expose<Lonely>("Lonely");
#endif

void use(const brant::PythonElement& element) {
  element.call("method", 1, "text", std::vector<double>());
#if CASE == 5
  element.call("method", Particle{});
#elif CASE == 6
  static_cast<void>(element.ask<Particle>("method"));
#endif
}
