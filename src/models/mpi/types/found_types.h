#pragma once

#include "models/mpi/types/constructors.h"

namespace brant::mpi {

// Predefined types that a program asks for by what they can hold. Nobody frees them. The kinds of Fortran are those of
// gfortran on this machine.

/// MPI_Type_create_f90_real and MPI_Type_create_f90_complex: at least so many decimal digits, and such a range of
/// decimal exponents; either may be kUndefined. MPI_ERR_ARG: both are, or there is no such type. Equal arguments find
/// the same type, whatever thread asks.
Made f90_real_type(Count digits, Count range);
Made f90_complex_type(Count digits, Count range);
/// MPI_Type_create_f90_integer: holds all numbers of so many decimal digits.
Made f90_integer_type(Count digits);

/// MPI_Type_match_size: Fortran's type of a class (TypeClass, as the program gave it) and a size. MPI_ERR_ARG: there is
/// none.
Made matching_type(int type_class, Count bytes);

/// MPI_Type_get_value_index: the predefined pair of a value and a place; null: there is none, which is no error.
[[nodiscard]] Datatype* value_index_type(const Datatype& value, const Datatype& place) noexcept;

}  // namespace brant::mpi
