// What the engine of types calls by numbers of its own is what mpi.h says.
#include "models/mpi/types/abi.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/mpi/mpi.h"
#include "models/mpi/types/datatype.h"
#include "models/mpi/types/op.h"

namespace brant::mpi {
namespace {

TEST(Abi, TypesHaveTheNamesOfTheirHandles) {
  const std::vector<std::pair<std::string, MPI_Datatype>> handles = {
      {"MPI_AINT", MPI_AINT},
      {"MPI_COUNT", MPI_COUNT},
      {"MPI_OFFSET", MPI_OFFSET},
      {"MPI_PACKED", MPI_PACKED},
      {"MPI_SHORT", MPI_SHORT},
      {"MPI_INT", MPI_INT},
      {"MPI_LONG", MPI_LONG},
      {"MPI_LONG_LONG", MPI_LONG_LONG},
      {"MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT},
      {"MPI_UNSIGNED", MPI_UNSIGNED},
      {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG},
      {"MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG},
      {"MPI_FLOAT", MPI_FLOAT},
      {"MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX},
      {"MPI_CXX_FLOAT_COMPLEX", MPI_CXX_FLOAT_COMPLEX},
      {"MPI_DOUBLE", MPI_DOUBLE},
      {"MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX},
      {"MPI_CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX},
      {"MPI_LOGICAL", MPI_LOGICAL},
      {"MPI_INTEGER", MPI_INTEGER},
      {"MPI_REAL", MPI_REAL},
      {"MPI_COMPLEX", MPI_COMPLEX},
      {"MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION},
      {"MPI_DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX},
      {"MPI_CHARACTER", MPI_CHARACTER},
      {"MPI_LONG_DOUBLE", MPI_LONG_DOUBLE},
      {"MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX},
      {"MPI_CXX_LONG_DOUBLE_COMPLEX", MPI_CXX_LONG_DOUBLE_COMPLEX},
      {"MPI_FLOAT_INT", MPI_FLOAT_INT},
      {"MPI_DOUBLE_INT", MPI_DOUBLE_INT},
      {"MPI_LONG_INT", MPI_LONG_INT},
      {"MPI_2INT", MPI_2INT},
      {"MPI_SHORT_INT", MPI_SHORT_INT},
      {"MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT},
      {"MPI_2REAL", MPI_2REAL},
      {"MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION},
      {"MPI_2INTEGER", MPI_2INTEGER},
      {"MPI_C_BOOL", MPI_C_BOOL},
      {"MPI_CXX_BOOL", MPI_CXX_BOOL},
      {"MPI_WCHAR", MPI_WCHAR},
      {"MPI_INT8_T", MPI_INT8_T},
      {"MPI_UINT8_T", MPI_UINT8_T},
      {"MPI_CHAR", MPI_CHAR},
      {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR},
      {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR},
      {"MPI_BYTE", MPI_BYTE},
      {"MPI_INT16_T", MPI_INT16_T},
      {"MPI_UINT16_T", MPI_UINT16_T},
      {"MPI_INT32_T", MPI_INT32_T},
      {"MPI_UINT32_T", MPI_UINT32_T},
      {"MPI_INT64_T", MPI_INT64_T},
      {"MPI_UINT64_T", MPI_UINT64_T},
      {"MPI_LOGICAL1", MPI_LOGICAL1},
      {"MPI_INTEGER1", MPI_INTEGER1},
      {"MPI_LOGICAL2", MPI_LOGICAL2},
      {"MPI_INTEGER2", MPI_INTEGER2},
      {"MPI_REAL2", MPI_REAL2},
      {"MPI_LOGICAL4", MPI_LOGICAL4},
      {"MPI_INTEGER4", MPI_INTEGER4},
      {"MPI_REAL4", MPI_REAL4},
      {"MPI_COMPLEX4", MPI_COMPLEX4},
      {"MPI_LOGICAL8", MPI_LOGICAL8},
      {"MPI_INTEGER8", MPI_INTEGER8},
      {"MPI_REAL8", MPI_REAL8},
      {"MPI_COMPLEX8", MPI_COMPLEX8},
      {"MPI_LOGICAL16", MPI_LOGICAL16},
      {"MPI_INTEGER16", MPI_INTEGER16},
      {"MPI_REAL16", MPI_REAL16},
      {"MPI_COMPLEX16", MPI_COMPLEX16},
      {"MPI_COMPLEX32", MPI_COMPLEX32},
  };
  for (const auto& [name, handle] : handles) {
    const Datatype* type = find_datatype(handle);
    ASSERT_NE(type, nullptr) << name;
    EXPECT_EQ(type->name(), name == "MPI_LONG_LONG" ? "MPI_LONG_LONG_INT" : name);
  }
  EXPECT_EQ(find_datatype(MPI_DATATYPE_NULL), nullptr);
}

TEST(Abi, OperationsHaveTheNamesOfTheirHandles) {
  const std::vector<std::pair<std::string, MPI_Op>> handles = {
      {"MPI_SUM", MPI_SUM},         {"MPI_MIN", MPI_MIN},     {"MPI_MAX", MPI_MAX},       {"MPI_PROD", MPI_PROD},
      {"MPI_BAND", MPI_BAND},       {"MPI_BOR", MPI_BOR},     {"MPI_BXOR", MPI_BXOR},     {"MPI_LAND", MPI_LAND},
      {"MPI_LOR", MPI_LOR},         {"MPI_LXOR", MPI_LXOR},   {"MPI_MINLOC", MPI_MINLOC}, {"MPI_MAXLOC", MPI_MAXLOC},
      {"MPI_REPLACE", MPI_REPLACE}, {"MPI_NO_OP", MPI_NO_OP},
  };
  for (const auto& [name, handle] : handles) {
    const Op* op = find_op(handle);
    ASSERT_NE(op, nullptr) << name;
    EXPECT_EQ(op->name(), name);
  }
  EXPECT_EQ(find_op(MPI_OP_NULL), nullptr);
}

template <typename Ours>
void expect_number(Ours ours, int number) {
  EXPECT_EQ(static_cast<int>(ours), number);
}

TEST(Abi, NumbersAreThoseOfTheHeader) {
  expect_number(ErrorClass::success, MPI_SUCCESS);
  expect_number(ErrorClass::buffer, MPI_ERR_BUFFER);
  expect_number(ErrorClass::count, MPI_ERR_COUNT);
  expect_number(ErrorClass::type, MPI_ERR_TYPE);
  expect_number(ErrorClass::op, MPI_ERR_OP);
  expect_number(ErrorClass::dims, MPI_ERR_DIMS);
  expect_number(ErrorClass::arg, MPI_ERR_ARG);
  expect_number(ErrorClass::truncate, MPI_ERR_TRUNCATE);
  expect_number(ErrorClass::other, MPI_ERR_OTHER);
  expect_number(ErrorClass::no_mem, MPI_ERR_NO_MEM);
  expect_number(ErrorClass::unsupported_datarep, MPI_ERR_UNSUPPORTED_DATAREP);
  expect_number(ErrorClass::value_too_large, MPI_ERR_VALUE_TOO_LARGE);
  expect_number(Combiner::named, MPI_COMBINER_NAMED);
  expect_number(Combiner::dup, MPI_COMBINER_DUP);
  expect_number(Combiner::contiguous, MPI_COMBINER_CONTIGUOUS);
  expect_number(Combiner::vector, MPI_COMBINER_VECTOR);
  expect_number(Combiner::hvector, MPI_COMBINER_HVECTOR);
  expect_number(Combiner::indexed, MPI_COMBINER_INDEXED);
  expect_number(Combiner::hindexed, MPI_COMBINER_HINDEXED);
  expect_number(Combiner::indexed_block, MPI_COMBINER_INDEXED_BLOCK);
  expect_number(Combiner::hindexed_block, MPI_COMBINER_HINDEXED_BLOCK);
  expect_number(Combiner::structure, MPI_COMBINER_STRUCT);
  expect_number(Combiner::subarray, MPI_COMBINER_SUBARRAY);
  expect_number(Combiner::darray, MPI_COMBINER_DARRAY);
  expect_number(Combiner::f90_real, MPI_COMBINER_F90_REAL);
  expect_number(Combiner::f90_complex, MPI_COMBINER_F90_COMPLEX);
  expect_number(Combiner::f90_integer, MPI_COMBINER_F90_INTEGER);
  expect_number(Combiner::resized, MPI_COMBINER_RESIZED);
  expect_number(Combiner::value_index, MPI_COMBINER_VALUE_INDEX);
  expect_number(ArrayOrder::c, MPI_ORDER_C);
  expect_number(ArrayOrder::fortran, MPI_ORDER_FORTRAN);
  expect_number(kDistributeNone, MPI_DISTRIBUTE_NONE);
  expect_number(kDistributeBlock, MPI_DISTRIBUTE_BLOCK);
  expect_number(kDistributeCyclic, MPI_DISTRIBUTE_CYCLIC);
  expect_number(kDistributeDefault, MPI_DISTRIBUTE_DFLT_DARG);
  expect_number(TypeClass::integer, MPI_TYPECLASS_INTEGER);
  expect_number(TypeClass::real, MPI_TYPECLASS_REAL);
  expect_number(TypeClass::complex, MPI_TYPECLASS_COMPLEX);
  expect_number(kUndefined, MPI_UNDEFINED);
}

}  // namespace
}  // namespace brant::mpi
