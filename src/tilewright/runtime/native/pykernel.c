/* A call tries the fast way: take the arguments, give up the GIL, run. When the arguments do not
 * fit, the method `_call_slowly` of the Python class takes over; when the run fails,
 * `_raise_failure` does. */
#include "pykernel.h"

#include "pool.h"
#include "timer.h"

typedef struct kernel_object {
    PyObject_HEAD
    tw_launch launch;   /* without buffers and sizes */
    tw_scratch scratch; /* NULL if the scratch is the same for all sizes */
    tw_params params;
} kernel_object;

static kernel_object *as_kernel(PyObject *self) { return (kernel_object *)(void *)self; }

static int kernel_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"entry", "params", "size_count", "threads", "shared_bytes",
                            "local_bytes", "scratch", NULL};
    kernel_object *kernel = as_kernel(self);
    unsigned long long entry, scratch = 0;
    Py_ssize_t size_count, shared_bytes, local_bytes;
    PyObject *specs;
    int threads;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "KO!ninn|K:Kernel", names, &entry, &PyTuple_Type, &specs, &size_count,
            &threads, &shared_bytes, &local_bytes, &scratch
        ))
        return -1;
    if (kernel->launch.kernel != NULL) {
        PyErr_SetString(PyExc_TypeError, "a kernel is initialised once");
        return -1;
    }
    if (entry == 0 || size_count < 0 || shared_bytes < 0 || local_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "a kernel needs an address and sizes that are not negative");
        return -1;
    }
    if (threads < 1 || threads > TW_MAX_THREADS) {
        PyErr_Format(PyExc_ValueError, "threads must be between 1 and %d, not %d", TW_MAX_THREADS, threads);
        return -1;
    }
    if (tw_params_init(&kernel->params, specs, size_count) < 0) {
        tw_params_clear(&kernel->params);
        return -1;
    }
    kernel->launch = (tw_launch){
        .kernel = (tw_kernel)(uintptr_t)entry,
        .threads = threads,
        .shared_bytes = (size_t)shared_bytes,
        .local_bytes = (size_t)local_bytes,
    };
    kernel->scratch = (tw_scratch)(uintptr_t)scratch;
    return 0;
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    return tw_params_traverse(&as_kernel(self)->params, visit, arg);
}

static int kernel_clear(PyObject *self) {
    as_kernel(self)->launch.kernel = NULL;
    tw_params_clear(&as_kernel(self)->params);
    return 0;
}

static void kernel_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    kernel_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static bool is_ready(PyObject *self) {
    if (as_kernel(self)->launch.kernel != NULL)
        return true;
    PyErr_SetString(PyExc_TypeError, "the kernel has not been initialised");
    return false;
}

/* Lets the Python class raise the error that fits. */
static PyObject *fail(PyObject *self, tw_status status, int32_t result) {
    PyObject *nothing =
        PyObject_CallMethod(self, "_raise_failure", "ii", (int)status, (int)result);
    if (nothing != NULL) {
        Py_DECREF(nothing);
        PyErr_SetString(PyExc_SystemError, "a failed kernel raised no error");
    }
    return NULL;
}

static tw_launch launch_of(const kernel_object *kernel, const tw_arguments *arguments) {
    tw_launch launch = kernel->launch;
    launch.buffers = arguments->pointers;
    launch.sizes = arguments->sizes;
    if (kernel->scratch != NULL) {
        int64_t bytes[2] = {0, 0};
        kernel->scratch(launch.sizes, bytes);
        launch.shared_bytes = (size_t)(bytes[0] < 0 ? PTRDIFF_MAX : bytes[0]);
        launch.local_bytes = (size_t)(bytes[1] < 0 ? PTRDIFF_MAX : bytes[1]);
    }
    return launch;
}

/* Runs and releases the arguments. */
static PyObject *run(PyObject *self, tw_arguments *arguments) {
    tw_launch launch = launch_of(as_kernel(self), arguments);
    tw_status status;
    int32_t result = 0;
    Py_BEGIN_ALLOW_THREADS
    status = tw_run(&launch, &result);
    Py_END_ALLOW_THREADS
    tw_arguments_release(arguments);
    if (status != TW_OK || result != 0)
        return fail(self, status, result);
    Py_RETURN_NONE;
}

void tw_trim_traceback(PyObject *self) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *trimmed = PyObject_GetAttrString(self, "_trimmed_error");
    if (trimmed == NULL)
        PyErr_Clear();
    else if (PyErr_GivenExceptionMatches(type, trimmed)) {
        PyErr_NormalizeException(&type, &value, &traceback);
        PyException_SetTraceback(value, Py_None);
        Py_CLEAR(traceback);
    }
    Py_XDECREF(trimmed);
    PyErr_Restore(type, value, traceback);
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs) {
    tw_arguments arguments;
    int good = kwargs == NULL || PyDict_Size(kwargs) == 0
        ? tw_arguments_take(&arguments, &as_kernel(self)->params, args)
        : 0;
    if (good < 0)
        return NULL;
    if (good > 0)
        return run(self, &arguments);
    PyObject *method = PyObject_GetAttrString(self, "_call_slowly");
    if (method == NULL)
        return NULL;
    PyObject *value = PyObject_Call(method, args, kwargs);
    Py_DECREF(method);
    return value;
}

static PyObject *kernel_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    if (!is_ready(self))
        return NULL;
    PyObject *value = call(self, args, kwargs);
    if (value == NULL)
        tw_trim_traceback(self);
    return value;
}

static PyObject *kernel_try_run(PyObject *self, PyObject *arrays) {
    tw_arguments arguments;
    if (!is_ready(self))
        return NULL;
    int good = tw_arguments_take(&arguments, &as_kernel(self)->params, arrays);
    if (good <= 0)
        return good < 0 ? NULL : Py_NewRef(Py_False);
    PyObject *nothing = run(self, &arguments);
    if (nothing == NULL)
        return NULL;
    Py_DECREF(nothing);
    Py_RETURN_TRUE;
}

/* Interrupts are looked at between samples; the list is complete or there is an exception. */
static PyObject *sample(PyObject *self, const tw_launch *launch, int repeat, int64_t min_ns) {
    PyObject *times = PyList_New(0);
    int64_t inner = 1;
    for (int i = -1; times != NULL && i < repeat; i++) {
        tw_status status;
        int32_t result = 0;
        double ns = 0;
        Py_BEGIN_ALLOW_THREADS
        status = i < 0 ? tw_time_calibrate(launch, min_ns, &inner, &result)
                       : tw_time_sample(launch, inner, &ns, &result);
        Py_END_ALLOW_THREADS
        bool good = status == TW_OK && result == 0;
        if (!good)
            fail(self, status, result);
        else if (i >= 0) {
            PyObject *value = PyFloat_FromDouble(ns);
            good = value != NULL && PyList_Append(times, value) == 0;
            Py_XDECREF(value);
        }
        if (!good || PyErr_CheckSignals() < 0)
            Py_CLEAR(times);
    }
    return times;
}

static PyObject *kernel_time(PyObject *self, PyObject *args) {
    tw_arguments arguments;
    PyObject *arrays;
    int repeat;
    long long min_ns;
    if (!PyArg_ParseTuple(args, "O!iL:_time", &PyTuple_Type, &arrays, &repeat, &min_ns))
        return NULL;
    if (!is_ready(self))
        return NULL;
    int good = tw_arguments_take(&arguments, &as_kernel(self)->params, arrays);
    if (good == 0)
        PyErr_SetString(PyExc_ValueError, "the arrays do not fit the kernel");
    if (good <= 0)
        return NULL;
    tw_launch launch = launch_of(as_kernel(self), &arguments);
    PyObject *times = sample(self, &launch, repeat, min_ns);
    tw_arguments_release(&arguments);
    return times;
}

static PyMethodDef METHODS[] = {
    {"_try_run", kernel_try_run, METH_O, "Run on a tuple of arrays; False if they do not fit."},
    {"_time", kernel_time, METH_VARARGS, "(arrays, repeat, min_ns) → nanoseconds of each sample."},
    {0},
};

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)"A compiled kernel; the base class of `tilewright.runtime.Kernel`."},
    {Py_tp_init, (void *)kernel_init},
    {Py_tp_dealloc, (void *)kernel_dealloc},
    {Py_tp_traverse, (void *)kernel_traverse},
    {Py_tp_clear, (void *)kernel_clear},
    {Py_tp_call, (void *)kernel_call},
    {Py_tp_methods, METHODS},
    {0, NULL},
};

static PyType_Spec SPEC = {
    .name = "tilewright.runtime._native.Kernel",
    .basicsize = sizeof(kernel_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = SLOTS,
};

PyObject *tw_kernel_type_new(void) { return PyType_FromSpec(&SPEC); }
