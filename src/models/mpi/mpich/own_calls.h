#pragma once

#include "models/mpi/mpich/callbacks.h"

/// The calls that generate_mpich.py does not translate. They return error codes of MPICH's ABI.
namespace brant::mpi::mpich::own {

// handlers.cc
int op_create(UserFunction* user_fn, int commute, int* op);
int op_create_c(UserFunctionC* user_fn, int commute, int* op);
int comm_create_errhandler(CommErrhandlerFunction* function, int* errhandler);
int win_create_errhandler(WinErrhandlerFunction* function, int* errhandler);
int session_create_errhandler(SessionErrhandlerFunction* function, int* errhandler);
int file_create_errhandler(FileErrhandlerFunction* function, int* errhandler);

// keys.cc
int comm_create_keyval(CommCopyAttrFunction* copy_fn, CommDeleteAttrFunction* delete_fn, int* keyval, void* extra);
int type_create_keyval(TypeCopyAttrFunction* copy_fn, TypeDeleteAttrFunction* delete_fn, int* keyval, void* extra);
int win_create_keyval(WinCopyAttrFunction* copy_fn, WinDeleteAttrFunction* delete_fn, int* keyval, void* extra);
int keyval_create(CopyFunction* copy_fn, DeleteFunction* delete_fn, int* keyval, void* extra);
int comm_get_attr(int comm, int keyval, void* value, int* flag);
int win_get_attr(int win, int keyval, void* value, int* flag);
int attr_get(int comm, int keyval, void* value, int* flag);

// program_functions.cc
int grequest_start(GrequestQueryFunction* query_fn, GrequestFreeFunction* free_fn, GrequestCancelFunction* cancel_fn,
                   void* extra, int* request);
int register_datarep(const char* datarep, DatarepConversionFunction* read_fn, DatarepConversionFunction* write_fn,
                     DatarepExtentFunction* extent_fn, void* extra);
int register_datarep_c(const char* datarep, DatarepConversionFunctionC* read_fn, DatarepConversionFunctionC* write_fn,
                       DatarepExtentFunction* extent_fn, void* extra);

// type_contents.cc
int type_get_contents(int datatype, int max_integers, int max_addresses, int max_datatypes, int integers[],
                      MPI_Aint addresses[], int datatypes[]);
int type_get_contents_c(int datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                        MPI_Count max_datatypes, int integers[], MPI_Aint addresses[], MPI_Count large_counts[],
                        int datatypes[]);

// environment.cc
int abi_get_version(int* abi_major, int* abi_minor);
int get_library_version(char* version, int* resultlen);
int get_processor_name(char* name, int* resultlen);
int t_event_get_info(int event_index, char* name, int* name_len, int* verbosity, int datatypes[],
                     MPI_Aint displacements[], int* num_elements, MPI_T_enum* enumtype, int* info, char* desc,
                     int* desc_len, int* bind);
int x_gpu_query_support(int gpu_type, int* is_supported);
int x_query_cuda_support();
int x_query_hip_support();
int x_query_ze_support();

// streams.cc
int x_comm_get_stream(int comm, int idx, int* stream);
int x_recv_enqueue(void* buf, MPI_Count count, int datatype, int source, int tag, int comm, Status* status);
int x_wait_enqueue(int* request, Status* status);
int x_waitall_enqueue(int count, int array_of_requests[], Status* array_of_statuses);

// removed_names.cc
int address(void* location, MPI_Aint* address);
int errhandler_create(CommErrhandlerFunction* function, int* errhandler);
int errhandler_get(int comm, int* errhandler);
int errhandler_set(int comm, int errhandler);
int type_extent(int datatype, MPI_Aint* extent);
int type_hindexed(int count, int blocklengths[], MPI_Aint displacements[], int oldtype, int* newtype);
int type_hvector(int count, int blocklength, MPI_Aint stride, int oldtype, int* newtype);
int type_lb(int datatype, MPI_Aint* displacement);
int type_struct(int count, int blocklengths[], MPI_Aint displacements[], int types[], int* newtype);
int type_ub(int datatype, MPI_Aint* displacement);

// fortran.cc
int file_c2f(MPI_File file);
MPI_File file_f2c(int file);
int file_toint(MPI_File file);
MPI_File file_fromint(int file);
int status_c2f(const Status* c_status, int* f_status);
int status_f2c(const int* f_status, Status* c_status);
int status_c2f08(const Status* c_status, Status* f08_status);
int status_f082c(const Status* f08_status, Status* c_status);
int status_f082f(const Status* f08_status, int* f_status);
int status_f2f08(const int* f_status, Status* f08_status);

}  // namespace brant::mpi::mpich::own
