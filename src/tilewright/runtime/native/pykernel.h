/* `_native.Kernel`: the callable base class of `tilewright.runtime.Kernel`. */
#ifndef TILEWRIGHT_PYKERNEL_H
#define TILEWRIGHT_PYKERNEL_H

#include "pyarguments.h"

/* Make the type; NULL with an exception. */
PyObject *tw_kernel_type_new(void);

/* A mistake of the caller is shown at the caller's line, without the frames of this package: the
 * exception that is set loses its traceback if it is of the type `_trimmed_error` of `self`. */
void tw_trim_traceback(PyObject *self);

#endif
