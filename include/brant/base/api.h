#pragma once

/// Marks what libbrant.so exports: everything that public headers declare and do not define. Brant is compiled with
/// hidden visibility, so that nothing else of it, nor of what is linked into it, can meet a program's own symbols.
#define BRANT_API [[gnu::visibility("default")]]
