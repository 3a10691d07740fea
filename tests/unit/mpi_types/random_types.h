#pragma once

#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/mpi/types/constructors.h"
#include "type_model.h"

namespace brant::mpi::test {

/// A type of the engine beside the model's.
struct Twin {
  DatatypeRef type;
  ModelType model;
};

/// Makes types of all constructors, nested, by chance: of zero counts, negative strides, overlapping.
class RandomTypes {
 public:
  explicit RandomTypes(unsigned seed) : random_(seed) {}

  Count number(Count low, Count high) { return std::uniform_int_distribution<Count>(low, high)(random_); }

  /// Of at most some 600 elements.
  Twin make(int depth) {
    if (depth == 0 || number(0, 9) == 0) return named();
    const Twin old = make(depth - 1);
    Twin made = next(old, depth);
    return made.model.elements.size() <= 600 ? made : old;
  }

 private:
  using Numbers = std::vector<Count>;

  Twin named() {
    static constexpr std::uint16_t kNumbers[] = {0x243, 0x247, 0x208, 0x209, 0x210, 0x214,
                                                 0x216, 0x229, 0x22c, 0x22b, 0x258, 0x220};
    const std::uint16_t chosen = kNumbers[static_cast<std::size_t>(number(0, std::size(kNumbers) - 1))];
    return {DatatypeRef(&predefined_type(chosen)), ModelType::named(chosen)};
  }
  CallForm form() { return number(0, 1) == 0 ? CallForm::ints : CallForm::counts; }
  Numbers numbers(std::size_t count, Count low, Count high) {
    Numbers all(count);
    for (Count& value : all) value = number(low, high);
    return all;
  }
  static Twin twin(Made made, ModelType model) {
    EXPECT_TRUE(made.ok()) << made.fault.text;
    return {std::move(made.type), std::move(model)};
  }

  Twin next(const Twin& old, int depth) {
    switch (number(0, 11)) {
      case 0: return contiguous(old);
      case 1: return vector(old, false);
      case 2: return vector(old, true);
      case 3: return indexed(old, false, false);
      case 4: return indexed(old, true, false);
      case 5: return indexed(old, false, true);
      case 6: return indexed(old, true, true);
      case 7:
      case 8: return structure(old, depth);
      case 9: return subarray(old);
      case 10: return darray(old);
      default: return number(0, 3) == 0 ? twin(dup_type(old.type.get()), old.model) : resized(old);
    }
  }

  Twin contiguous(const Twin& old) {
    const Count count = number(0, 5);
    ModelType model;
    model.add(old.model, count, 0);
    return twin(contiguous_type(count, old.type.get(), form()), model);
  }

  Twin vector(const Twin& old, bool bytes) {
    const Count count = number(0, 5), length = number(0, 4);
    const Count extent = old.model.extent();
    const Count reach = 3 * std::abs(extent) + 20;
    const Count stride = bytes ? number(-reach, reach) : number(-6, 6);
    ModelType model;
    for (Count i = 0; i < count; ++i) model.add(old.model, length, i * stride * (bytes ? 1 : extent));
    Datatype* type = old.type.get();
    return twin(
        bytes ? hvector_type(count, length, stride, type, form()) : vector_type(count, length, stride, type, form()),
        model);
  }

  Twin indexed(const Twin& old, bool bytes, bool block) {
    const auto count = static_cast<std::size_t>(number(0, 6));
    Numbers lengths = numbers(block ? 1 : count, 0, 4);
    const Numbers places = bytes ? numbers(count, -200, 400) : numbers(count, -5, 12);
    ModelType model;
    for (std::size_t i = 0; i < count; ++i) {
      model.add(old.model, lengths[block ? 0 : i], places[i] * (bytes ? 1 : old.model.extent()));
    }
    Datatype* type = old.type.get();
    if (block) {
      return twin(bytes ? hindexed_block_type(lengths[0], places, type, form())
                        : indexed_block_type(lengths[0], places, type, form()),
                  model);
    }
    return twin(bytes ? hindexed_type(lengths, places, type, form()) : indexed_type(lengths, places, type, form()),
                model);
  }

  Twin structure(const Twin& old, int depth) {
    const auto count = static_cast<std::size_t>(number(0, 4));
    const Numbers lengths = numbers(count, 0, 3);
    const Numbers places = numbers(count, -100, 300);
    std::vector<Twin> members;
    std::vector<Datatype*> types;
    ModelType model;
    for (std::size_t i = 0; i < count; ++i) {
      members.push_back(number(0, 1) == 0 ? old : make(depth - 1));
      types.push_back(members.back().type.get());
      model.add(members.back().model, lengths[i], places[i]);
    }
    return twin(struct_type(lengths, places, types, form()), model);
  }

  Twin resized(const Twin& old) {
    ModelType model = old.model;
    const Count low = number(-40, 40), extent = number(-10, 3 * std::abs(old.model.extent()) + 20);
    model.mark(low, low + extent);
    return twin(resized_type(old.type.get(), low, extent, form()), model);
  }

  Twin subarray(const Twin& old) {
    const auto dimensions = static_cast<std::size_t>(number(1, 3));
    Numbers sizes, parts, starts;
    std::vector<Numbers> places(dimensions);
    for (std::size_t i = 0; i < dimensions; ++i) {
      sizes.push_back(number(1, 4));
      parts.push_back(number(1, sizes[i]));
      starts.push_back(number(0, sizes[i] - parts[i]));
      for (Count k = 0; k < parts[i]; ++k) places[i].push_back(starts[i] + k);
    }
    const bool fortran = number(0, 1) == 0;
    const int order = static_cast<int>(fortran ? ArrayOrder::fortran : ArrayOrder::c);
    return twin(subarray_type(sizes, parts, starts, order, old.type.get(), form()),
                model_of_part(old.model, sizes, places, fortran));
  }

  Twin darray(const Twin& old) {
    const auto dimensions = static_cast<std::size_t>(number(1, 3));
    Numbers sizes = numbers(dimensions, 1, 9), kinds, arguments, grid;
    Count processes = 1;
    for (std::size_t i = 0; i < dimensions; ++i) {
      kinds.push_back(number(kDistributeNone, kDistributeCyclic));
      grid.push_back(kinds[i] == kDistributeNone ? 1 : number(1, 3));
      const Count least = kinds[i] == kDistributeBlock ? (sizes[i] + grid[i] - 1) / grid[i] : 1;
      arguments.push_back(number(0, 1) == 0 ? kDistributeDefault : least + number(0, 2));
      processes *= grid[i];
    }
    const Count rank = number(0, processes - 1);
    std::vector<Numbers> places(dimensions);
    Count rest = rank;
    for (std::size_t i = dimensions; i-- > 0; rest /= grid[i]) {
      const Count mine = rest % grid[i];
      Count block = arguments[i];
      if (block == kDistributeDefault) block = kinds[i] == kDistributeCyclic ? 1 : (sizes[i] + grid[i] - 1) / grid[i];
      for (Count k = 0; k < sizes[i]; ++k) {
        if (kinds[i] == kDistributeNone || k / block % grid[i] == mine) places[i].push_back(k);
      }
    }
    const bool fortran = number(0, 1) == 0;
    const Distribution how{processes,
                           rank,
                           sizes,
                           kinds,
                           arguments,
                           grid,
                           static_cast<int>(fortran ? ArrayOrder::fortran : ArrayOrder::c)};
    return twin(darray_type(how, old.type.get(), form()), model_of_part(old.model, sizes, places, fortran));
  }

  std::mt19937 random_;
};

}  // namespace brant::mpi::test
