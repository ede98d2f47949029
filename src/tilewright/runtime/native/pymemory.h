/* Aligned memory as a Python object that exports a writable buffer of bytes. */
#ifndef TILEWRIGHT_PYMEMORY_H
#define TILEWRIGHT_PYMEMORY_H

#include "pyarguments.h"

/* Make the type; NULL with an exception. */
PyObject *tw_memory_type_new(void);

#endif
