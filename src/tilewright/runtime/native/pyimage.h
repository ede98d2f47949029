/* An image of machine code as a Python object: an address that is valid while the object lives. */
#ifndef TILEWRIGHT_PYIMAGE_H
#define TILEWRIGHT_PYIMAGE_H

#include "pyarguments.h"

/* Make the type; NULL with an exception. */
PyObject *tw_image_type_new(void);

#endif
