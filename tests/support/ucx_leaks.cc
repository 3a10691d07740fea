// Linked into tests that kill a process UCX is connected to. UCX keeps records of what it never ends, and loses some
// of connections begun with the dead; those are not ours to free. The names are those of UCX's own allocation
// functions: nothing of ours is ever allocated below them. The driver, which UCX loads where there is one, is seen
// half in a child of fork(): its threads are not there.
//
// Visible, because the sanitizer's runtime is a library of its own: it would not find a hidden function.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions();
const char* __lsan_default_suppressions() {
  return "leak:ucs_malloc\nleak:ucs_calloc\nleak:ucs_realloc\nleak:ucs_posix_memalign\nleak:ucs_strdup\n"
         "leak:ucs_mpool_grow\nleak:uct_mm_ep_attach_remote_seg\nleak:libcuda.so\n";
}
