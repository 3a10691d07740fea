#pragma once

#include "brant/mpi/mpi.h"
#include "models/mpi/mpich/status.h"

/// The functions of programs that were compiled for MPICH's ABI.
namespace brant::mpi::mpich {

using UserFunction = void(void* in, void* inout, int* count, int* datatype);
using UserFunctionC = void(void* in, void* inout, MPI_Count* count, int* datatype);

using CommErrhandlerFunction = void(int* comm, int* code, ...);
using WinErrhandlerFunction = void(int* win, int* code, ...);
using SessionErrhandlerFunction = void(int* session, int* code, ...);
using FileErrhandlerFunction = void(MPI_File* file, int* code, ...);

/// The functions of keys have one form: handles of all their classes are ints.
using CopyFunction = int(int handle, int key, void* extra, void* value, void* copied, int* flag);
using DeleteFunction = int(int handle, int key, void* value, void* extra);
using CommCopyAttrFunction = CopyFunction;
using TypeCopyAttrFunction = CopyFunction;
using WinCopyAttrFunction = CopyFunction;
using CommDeleteAttrFunction = DeleteFunction;
using TypeDeleteAttrFunction = DeleteFunction;
using WinDeleteAttrFunction = DeleteFunction;

using GrequestQueryFunction = int(void* extra, Status* status);
using GrequestFreeFunction = int(void* extra);
using GrequestCancelFunction = int(void* extra, int complete);

using DatarepExtentFunction = int(int datatype, MPI_Aint* extent, void* extra);
using DatarepConversionFunction = int(void* memory, int datatype, int count, void* file, MPI_Offset position,
                                      void* extra);
using DatarepConversionFunctionC = int(void* memory, int datatype, MPI_Count count, void* file, MPI_Offset position,
                                       void* extra);

}  // namespace brant::mpi::mpich
