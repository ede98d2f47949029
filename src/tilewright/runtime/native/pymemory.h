/* Aligned memory as a Python object that exports a writable buffer of bytes. */
#ifndef TILEWRIGHT_PYMEMORY_H
#define TILEWRIGHT_PYMEMORY_H

#include "pyarguments.h"

/* Make the type; NULL with an exception. */
PyObject *tw_memory_type_new(void);

/* Memory of `tw_alloc` as an object that frees it, also if making the object fails. */
PyObject *tw_memory_adopt(void *data, Py_ssize_t bytes);

#endif
