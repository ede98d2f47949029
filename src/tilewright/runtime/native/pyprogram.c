#include "pyprogram.h"

#include <string.h>

#include "pyinference.h"

#define KEPT_SEATS 16 /* more calls at once than that make and free their own */

/* Rows of 64-bit numbers; -1 with an exception. */
static int64_t take_rows(PyObject *table, size_t row_bytes, Py_buffer *view) {
    if (PyObject_GetBuffer(table, view, PyBUF_SIMPLE) < 0)
        return -1;
    if ((size_t)view->len % row_bytes == 0 && (uintptr_t)view->buf % sizeof(int64_t) == 0)
        return view->len / (Py_ssize_t)row_bytes;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "a table does not consist of rows");
    return -1;
}

static int read_tables(tw_program_object *self, PyObject *rows, int64_t segments, int threads) {
    static const size_t row_bytes[] = {
        sizeof(tw_operation), sizeof(tw_size), sizeof(tw_buffer), sizeof(tw_code), sizeof(tw_step),
        sizeof(int64_t),
    };
    enum { TABLES = sizeof row_bytes / sizeof *row_bytes };
    Py_buffer views[TABLES];
    int64_t counts[TABLES];
    int taken = 0;
    if (PyTuple_Size(rows) != TABLES) {
        PyErr_SetString(PyExc_ValueError, "a program has six tables");
        return -1;
    }
    for (; taken < TABLES; taken++) {
        counts[taken] = take_rows(PyTuple_GetItem(rows, taken), row_bytes[taken], &views[taken]);
        if (counts[taken] < 0)
            break;
    }
    if (taken == TABLES) {
        tw_tables tables = {
            .operations = views[0].buf, .operation_count = counts[0],
            .sizes = views[1].buf, .size_count = counts[1],
            .buffers = views[2].buf, .buffer_count = counts[2],
            .kernels = views[3].buf, .kernel_count = counts[3],
            .steps = views[4].buf, .step_count = counts[4],
            .numbers = views[5].buf, .number_count = counts[5],
            .segment_count = segments,
        };
        self->program = tw_program_new(&tables, threads, self->weights.buf, self->weights.len);
        if (self->program == NULL)
            PyErr_NoMemory();
    }
    for (int i = 0; i < taken; i++)
        PyBuffer_Release(&views[i]);
    return self->program == NULL ? -1 : 0;
}

static int read_ports(tw_ports *ports, PyObject *specs, PyObject *names, PyObject *buffers,
                      const tw_tables *tables) {
    Py_ssize_t count = PyTuple_Size(specs);
    if (count != PyTuple_Size(names) || count != PyTuple_Size(buffers)) {
        PyErr_SetString(PyExc_ValueError, "a port has a parameter, a name and a buffer");
        return -1;
    }
    if (tw_params_init(&ports->params, specs, (Py_ssize_t)tables->size_count) < 0)
        return -1;
    ports->names = Py_NewRef(names);
    ports->buffers = PyMem_Calloc((size_t)count + 1, sizeof *ports->buffers);
    if (ports->buffers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        ports->buffers[i] = PyLong_AsLongLong(PyTuple_GetItem(buffers, i));
        if (ports->buffers[i] < 0 || ports->buffers[i] >= tables->buffer_count) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a port names a buffer that does not exist");
            return -1;
        }
    }
    return 0;
}

static void clear_ports(tw_ports *ports) {
    tw_params_clear(&ports->params);
    Py_CLEAR(ports->names);
    PyMem_Free(ports->buffers);
    ports->buffers = NULL;
}

static int program_init(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"tables", "segments", "threads", "weights", "inputs", "outputs", NULL};
    tw_program_object *self = tw_as_program(object);
    PyObject *rows, *weights, *in[3], *out[3];
    long long segments;
    int threads;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!LiO(O!O!O!)(O!O!O!):Program", names, &PyTuple_Type, &rows, &segments,
            &threads, &weights, &PyTuple_Type, &in[0], &PyTuple_Type, &in[1], &PyTuple_Type, &in[2],
            &PyTuple_Type, &out[0], &PyTuple_Type, &out[1], &PyTuple_Type, &out[2]
        ))
        return -1;
    if (self->weights.obj != NULL) {
        PyErr_SetString(PyExc_TypeError, "a program is initialised once");
        return -1;
    }
    if (segments < 1 || threads < 1 || threads > TW_MAX_THREADS) {
        PyErr_Format(PyExc_ValueError, "threads must be between 1 and %d, not %d", TW_MAX_THREADS, threads);
        return -1;
    }
    if (PyObject_GetBuffer(weights, &self->weights, PyBUF_SIMPLE) < 0)
        return -1;
    if (read_tables(self, rows, segments, threads) < 0)
        return -1;
    if (read_ports(&self->inputs, in[0], in[1], in[2], &self->program->tables) < 0
        || read_ports(&self->outputs, out[0], out[1], out[2], &self->program->tables) < 0) {
        tw_program_free(self->program);
        self->program = NULL;
        return -1;
    }
    return 0;
}

static void free_seat(tw_program_object *self, tw_seat *seat) {
    if (seat->before != NULL)
        seat->before->after = seat->after;
    else if (self->all_seats == seat)
        self->all_seats = seat->after;
    if (seat->after != NULL)
        seat->after->before = seat->before;
    tw_frame_free(seat->frame);
    void *owned[] = {seat->inputs, seat->outputs, seat->made, seat->is_given, seat->is_copied,
                     seat->told, seat->told_out, seat};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        PyMem_Free(owned[i]);
}

static tw_seat *new_seat(tw_program_object *self) {
    tw_seat *made = PyMem_Calloc(1, sizeof *made);
    if (made == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    size_t outputs = (size_t)self->outputs.params.count + 1;
    size_t sizes = (size_t)self->program->tables.size_count + 1;
    made->frame = tw_frame_new(self->program);
    made->inputs = PyMem_Calloc((size_t)self->inputs.params.count + 1, sizeof *made->inputs);
    made->outputs = PyMem_Calloc(outputs, sizeof *made->outputs);
    made->is_given = PyMem_Calloc(outputs, sizeof *made->is_given);
    made->is_copied = PyMem_Calloc(outputs, sizeof *made->is_copied);
    made->told = PyMem_Calloc(sizes, sizeof *made->told);
    made->told_out = PyMem_Calloc(sizes, sizeof *made->told_out);
    if (made->frame && made->inputs && made->outputs && made->is_given && made->is_copied
        && made->told && made->told_out)
        return made;
    free_seat(self, made);
    PyErr_NoMemory();
    return NULL;
}

tw_seat *tw_seat_take(tw_program_object *self) {
    tw_seat *taken = self->free_seats;
    if (taken != NULL) {
        self->free_seats = taken->next;
        self->free_count--;
    } else if ((taken = new_seat(self)) == NULL) {
        return NULL;
    } else {
        taken->after = self->all_seats;
        if (taken->after != NULL)
            taken->after->before = taken;
        self->all_seats = taken;
    }
    for (int64_t i = 0; i < self->program->tables.size_count; i++)
        taken->told[i] = -1;
    return taken;
}

void tw_seat_leave(tw_program_object *self, tw_seat *seat) {
    while (seat->input_count > 0)
        PyBuffer_Release(&seat->inputs[--seat->input_count]);
    while (seat->made_count > 0)
        PyBuffer_Release(&seat->made[--seat->made_count]);
    for (Py_ssize_t i = 0; i < self->outputs.params.count; i++) {
        if (seat->is_given[i])
            PyBuffer_Release(&seat->outputs[i]);
        seat->is_given[i] = seat->is_copied[i] = false;
    }
    tw_frame_reset(seat->frame);
    if (self->free_count >= KEPT_SEATS) {
        free_seat(self, seat);
        return;
    }
    seat->next = self->free_seats;
    self->free_seats = seat;
    self->free_count++;
}

static int program_traverse(PyObject *object, visitproc visit, void *arg) {
    tw_program_object *self = tw_as_program(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->weights.obj);
    Py_VISIT(self->inputs.names);
    Py_VISIT(self->outputs.names);
    int stop = tw_params_traverse(&self->inputs.params, visit, arg);
    return stop ? stop : tw_params_traverse(&self->outputs.params, visit, arg);
}

static void free_seats(tw_program_object *self) {
    while (self->free_seats != NULL) {
        tw_seat *gone = self->free_seats;
        self->free_seats = gone->next;
        free_seat(self, gone);
    }
    self->free_count = 0;
}

static int program_clear(PyObject *object) {
    tw_program_object *self = tw_as_program(object);
    free_seats(self);
    tw_program_free(self->program);
    self->program = NULL;
    clear_ports(&self->inputs);
    clear_ports(&self->outputs);
    PyBuffer_Release(&self->weights);
    return 0;
}

static void program_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    program_clear(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *program_memory(PyObject *object, PyObject *unused) {
    (void)unused;
    tw_program_object *self = tw_as_program(object);
    size_t arenas = 0, scratch = 0;
    Py_ssize_t frames = 0;
    for (tw_seat *seat = self->all_seats; seat != NULL; seat = seat->after, frames++) {
        arenas += tw_frame_arena_bytes(seat->frame);
        scratch += seat->frame->scratch.bytes;
    }
    return Py_BuildValue("nnn", frames, (Py_ssize_t)arenas, (Py_ssize_t)scratch);
}

static PyObject *program_plans(PyObject *object, PyObject *unused) {
    (void)unused;
    long long plans = 0;
    for (tw_seat *seat = tw_as_program(object)->all_seats; seat != NULL; seat = seat->after)
        plans += seat->frame->plan_count;
    return PyLong_FromLongLong(plans);
}

/* Of the frame that the next call takes. */
static PyObject *program_places(PyObject *object, PyObject *unused) {
    (void)unused;
    tw_program_object *self = tw_as_program(object);
    Py_ssize_t count = self->free_seats == NULL ? 0 : self->program->tables.buffer_count;
    PyObject *places = PyTuple_New(count);
    for (Py_ssize_t i = 0; places != NULL && i < count; i++) {
        const tw_frame *frame = self->free_seats->frame;
        long long address = (long long)(intptr_t)frame->pointers[i];
        PyObject *place = Py_BuildValue("LL", address, (long long)frame->bytes[i]);
        if (place == NULL || PyTuple_SetItem(places, i, place) < 0)
            Py_CLEAR(places);
    }
    return places;
}

static PyObject *program_trim(PyObject *object, PyObject *unused) {
    (void)unused;
    free_seats(tw_as_program(object));
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"run", tw_inference_run, METH_O, "Outputs for a dictionary of arrays by input name."},
    {"run_into", tw_inference_run_into, METH_VARARGS,
     "(feeds, outputs): leave results in these arrays, by output name; others are not kept."},
    {"trim", program_trim, METH_NOARGS, "Free the memory of frames that no call uses now."},
    {"_try_run", tw_inference_try, METH_O, "feeds -> arrays; None if they do not fit."},
    {"_try_run_into", tw_inference_try_into, METH_VARARGS,
     "(feeds, outputs) -> True; None if they do not fit."},
    {"_try_profile", tw_inference_profile, METH_O,
     "feeds -> (arrays, events, sizes); None if they do not fit."},
    {"_memory", program_memory, METH_NOARGS, "(frames, bytes of arenas, bytes of scratch)"},
    {"_plans", program_plans, METH_NOARGS,
     "How often the frames met sizes that they did not know, and placed everything anew."},
    {"_places", program_places, METH_NOARGS,
     "(address, bytes) of each buffer as the last call left it; 0: it has no memory now."},
    {0},
};

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)"A whole model; the base class of `tilewright.runtime.Executable`."},
    {Py_tp_init, (void *)program_init},
    {Py_tp_dealloc, (void *)program_dealloc},
    {Py_tp_traverse, (void *)program_traverse},
    {Py_tp_clear, (void *)program_clear},
    {Py_tp_methods, METHODS},
    {0, NULL},
};

static PyType_Spec SPEC = {
    .name = "tilewright.runtime._native.Program",
    .basicsize = sizeof(tw_program_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = SLOTS,
};

PyObject *tw_program_type_new(void) { return PyType_FromSpec(&SPEC); }
