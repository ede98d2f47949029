/* Digests of blocks for Python. */
#ifndef TILEWRIGHT_PYDIGEST_H
#define TILEWRIGHT_PYDIGEST_H

#include "pyarguments.h"

/* (data, threads) → the digests of its blocks, eight bytes each. */
PyObject *tw_py_digest_blocks(PyObject *module, PyObject *args);

#endif
