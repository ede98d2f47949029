/* Reading the capsule of the DLPack protocol, versions 0 and 1. */
#ifndef TILEWRIGHT_PYDLPACK_H
#define TILEWRIGHT_PYDLPACK_H

#include "pyarguments.h"

/* capsule → (address, device, kind, bits, lanes, shape, strides or None, is_readonly). The capsule
 * is not consumed: its memory stays valid as long as the capsule object lives. */
PyObject *tw_read_dlpack(PyObject *module, PyObject *capsule);

#endif
