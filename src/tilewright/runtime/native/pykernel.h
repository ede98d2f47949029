/* `_native.Kernel`: the callable base class of `tilewright.runtime.Kernel`. */
#ifndef TILEWRIGHT_PYKERNEL_H
#define TILEWRIGHT_PYKERNEL_H

#include "pyarguments.h"

/* Make the type; NULL with an exception. */
PyObject *tw_kernel_type_new(void);

#endif
