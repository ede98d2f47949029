#include "pyinference.h"

#include <stdlib.h>
#include <string.h>

#include "pykernel.h"
#include "pymemory.h"
#include "timer.h"

/* 1: good. 0: declined. -1: exception. An exception about an array only means "does not fit". */
static int soften(int state) {
    if (state >= 0)
        return state;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return 0;
}

static int take_inputs(tw_program_object *self, tw_seat *seat, PyObject *feeds) {
    Py_ssize_t count = self->inputs.params.count;
    if (!PyDict_CheckExact(feeds) || PyDict_Size(feeds) != count)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *array = PyDict_GetItemWithError(feeds, PyTuple_GetItem(self->inputs.names, i));
        if (array == NULL)
            return PyErr_Occurred() ? -1 : 0;
        Py_buffer *view = &seat->inputs[i];
        int good = tw_param_take(array, &self->inputs.params.items[i], seat->told, view);
        if (good != 1)
            return soften(good);
        seat->input_count++;
        tw_frame_give(seat->frame, self->inputs.buffers[i], view->buf, view->len, false);
    }
    return 1;
}

/* An output is copied in the end if the program does not write it where it is wanted: because it is
 * part of something else, or because the array is also read. */
static bool is_direct(const tw_program_object *self, const tw_seat *seat, Py_ssize_t port) {
    int64_t buffer = self->outputs.buffers[port];
    if (self->program->tables.buffers[buffer].place != TW_OUTPUT || seat->frame->given[buffer] >= 0
        || self->program->tables.buffers[buffer].segment > 0)
        return false;
    for (Py_ssize_t i = 0; i < seat->input_count; i++)
        if (tw_views_overlap(&seat->inputs[i], &seat->outputs[port]))
            return false;
    return true;
}

static int take_outputs(tw_program_object *self, tw_seat *seat, PyObject *outputs) {
    if (!PyDict_CheckExact(outputs))
        return 0;
    for (int64_t i = 0; i < self->program->tables.size_count; i++)
        seat->told_out[i] = -1;
    Py_ssize_t found = 0;
    for (Py_ssize_t i = 0; i < self->outputs.params.count; i++) {
        PyObject *array = PyDict_GetItemWithError(outputs, PyTuple_GetItem(self->outputs.names, i));
        if (array == NULL && PyErr_Occurred())
            return -1;
        if (array == NULL)
            continue;
        found++;
        Py_buffer *view = &seat->outputs[i];
        int good = tw_param_take(array, &self->outputs.params.items[i], seat->told_out, view);
        if (good != 1)
            return soften(good);
        seat->is_given[i] = true;
        for (Py_ssize_t j = 0; j < i; j++)
            if (seat->is_given[j] && tw_views_overlap(&seat->outputs[j], view))
                return 0;
        seat->is_copied[i] = !is_direct(self, seat, i);
        if (!seat->is_copied[i])
            tw_frame_give(seat->frame, self->outputs.buffers[i], view->buf, view->len, false);
    }
    return found == PyDict_Size(outputs);
}

/* Sizes that the arrays tell; those that are computed must come out the same. */
static int bind_sizes(tw_program_object *self, tw_seat *seat, bool has_outputs) {
    const tw_tables *tables = &self->program->tables;
    for (int64_t i = 0; i < tables->size_count; i++) {
        if (tables->sizes[i].segment > 0 || tables->sizes[i].value.count > 0)
            continue;
        if (seat->told[i] < 0)
            return 0;
        seat->frame->sizes[i] = seat->told[i];
    }
    /* The walk does not start after trouble, which is explained: sizes that differ come first. */
    if (!tw_frame_enter(seat->frame, 0) && seat->frame->trouble.outcome == TW_BAD_SIZE)
        return 1;
    for (int64_t i = 0; i < tables->size_count; i++) {
        if (tables->sizes[i].segment > 0)
            continue;
        int64_t size = seat->frame->sizes[i];
        if ((seat->told[i] >= 0 && seat->told[i] != size)
            || (has_outputs && seat->told_out[i] >= 0 && seat->told_out[i] != size))
            return 0;
    }
    return 1;
}

/* A copy: Python functions may keep what they are given. */
static PyObject *copy_of(const void *memory, int64_t bytes) {
    void *data = tw_alloc((size_t)bytes);
    if (data == NULL)
        return PyErr_NoMemory();
    if (bytes > 0)
        memcpy(data, memory, (size_t)bytes);
    return tw_memory_adopt(data, (Py_ssize_t)bytes);
}

static PyObject *tuple_of_sizes(const tw_seat *seat) {
    int64_t count = seat->frame->program->tables.size_count;
    PyObject *sizes = PyTuple_New((Py_ssize_t)count);
    for (int64_t i = 0; sizes != NULL && i < count; i++) {
        PyObject *size = PyLong_FromLongLong(seat->frame->sizes[i]);
        if (size == NULL || PyTuple_SetItem(sizes, (Py_ssize_t)i, size) < 0)
            Py_CLEAR(sizes);
    }
    return sizes;
}

/* Raises what the Python class says, which is given all sizes so far; always NULL. */
static PyObject *fail(PyObject *object, const tw_seat *seat, tw_trouble trouble) {
    PyObject *sizes = tuple_of_sizes(seat), *nothing = NULL;
    if (sizes != NULL)
        nothing = PyObject_CallMethod(
            object, "_raise_failure", "iLLO", (int)trouble.outcome, (long long)trouble.which,
            (long long)trouble.value, sizes
        );
    Py_XDECREF(sizes);
    if (nothing != NULL) {
        Py_DECREF(nothing);
        PyErr_SetString(PyExc_SystemError, "a failed program raised no error");
    }
    return NULL;
}

static PyObject *host_arguments(const tw_seat *seat, const tw_step *step) {
    const tw_frame *frame = seat->frame;
    PyObject *arrays = PyTuple_New((Py_ssize_t)step->first.count);
    for (int64_t i = 0; arrays != NULL && i < step->first.count; i++) {
        int64_t buffer = frame->program->tables.numbers[step->first.start + i];
        PyObject *array = NULL;
        if (frame->pointers[buffer] == NULL)
            PyErr_Format(PyExc_SystemError, "buffer %lld has no memory", (long long)buffer);
        else
            array = copy_of(frame->pointers[buffer], frame->bytes[buffer]);
        if (array == NULL || PyTuple_SetItem(arrays, (Py_ssize_t)i, array) < 0)
            Py_CLEAR(arrays);
    }
    return arrays;
}

/* Whether the bytes of a result are known only when the sizes are that the same step tells. */
static bool is_early(const tw_tables *tables, const tw_step *step, int64_t buffer) {
    for (int64_t i = 0; i < step->third.count; i++) {
        int64_t size = tables->numbers[step->third.start + i];
        if (tables->sizes[size].segment == tables->buffers[buffer].segment)
            return true;
    }
    return false;
}

static int keep_result(tw_seat *seat, const tw_step *step, int64_t number, PyObject *result) {
    if (seat->made_count == seat->made_room) {
        Py_ssize_t room = 2 * seat->made_room + 8;
        Py_buffer *views = PyMem_Realloc(seat->made, (size_t)room * sizeof *views);
        if (views == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        seat->made = views;
        seat->made_room = room;
    }
    const tw_tables *tables = &seat->frame->program->tables;
    Py_buffer *view = &seat->made[seat->made_count];
    int64_t buffer = tables->numbers[step->second.start + number];
    if (PyObject_GetBuffer(result, view, PyBUF_SIMPLE) < 0)
        return -1;
    seat->made_count++;
    return tw_frame_give(
        seat->frame, buffer, view->buf, view->len, is_early(tables, step, buffer)
    );
}

/* `_run_host(step, memories, sizes)` returns (arrays, sizes). 1: go on, 0: trouble, -1: exception */
static int run_host(PyObject *object, tw_seat *seat) {
    tw_frame *frame = seat->frame;
    const tw_tables *tables = &frame->program->tables;
    const tw_step *step = &tables->steps[frame->at];
    int64_t begin_ns = frame->events != NULL ? tw_clock_ns() : 0;
    PyObject *memories = host_arguments(seat, step);
    PyObject *sizes = memories ? tuple_of_sizes(seat) : NULL;
    PyObject *answer = sizes ? PyObject_CallMethod(
        object, "_run_host", "LOO", (long long)frame->at, memories, sizes
    ) : NULL;
    Py_XDECREF(memories);
    Py_XDECREF(sizes);
    PyObject *arrays, *defined;
    int good = -1;
    if (answer != NULL
        && PyArg_ParseTuple(answer, "O!O!", &PyTuple_Type, &arrays, &PyTuple_Type, &defined)) {
        good = 1;
        if (PyTuple_Size(arrays) != step->second.count || PyTuple_Size(defined) != step->third.count) {
            PyErr_SetString(PyExc_SystemError, "a step of Python returned too much or too little");
            good = -1;
        }
        for (int64_t i = 0; good == 1 && i < step->second.count; i++)
            good = keep_result(seat, step, i, PyTuple_GetItem(arrays, (Py_ssize_t)i));
        for (int64_t i = 0; good == 1 && i < step->third.count; i++) {
            int64_t size = tables->numbers[step->third.start + i];
            frame->sizes[size] = PyLong_AsLongLong(PyTuple_GetItem(defined, (Py_ssize_t)i));
            good = PyErr_Occurred() ? -1 : 1;
        }
    }
    Py_XDECREF(answer);
    tw_note(frame, frame->at, begin_ns);
    frame->at++;
    return good;
}

/* 1: done, -1: exception. */
static int walk(PyObject *object, tw_seat *seat) {
    tw_frame *frame = seat->frame;
    if (frame->trouble.outcome != TW_DONE) {
        fail(object, seat, frame->trouble);
        return -1;
    }
    for (;;) {
        tw_outcome outcome;
        Py_BEGIN_ALLOW_THREADS
        outcome = tw_walk(frame);
        Py_END_ALLOW_THREADS
        if (outcome == TW_DONE)
            return 1;
        int good = outcome == TW_AT_HOST ? run_host(object, seat) : 0;
        if (good == 0)
            fail(object, seat, frame->trouble);
        if (good != 1)
            return -1;
    }
}

#define TOO_MANY INT64_MAX

static int64_t extent_of(const tw_param *param, int d, const int64_t *sizes) {
    return param->dims[d] < 0 ? sizes[-1 - param->dims[d]] : param->dims[d];
}

/* The shape of an output and its bytes. They are TOO_MANY also where there are no elements at all:
   NumPy has no array whose extents other than zero ask for more bytes than it can count. */
static PyObject *shape_of(const tw_param *param, const int64_t *sizes, int64_t *bytes) {
    PyObject *shape = PyTuple_New(param->rank);
    int64_t counted = param->item_bytes;
    bool is_empty = false, is_countable = true;
    for (int d = 0; shape != NULL && d < param->rank; d++) {
        int64_t extent = extent_of(param, d, sizes);
        is_empty = is_empty || extent == 0;
        if (extent < 0 || (extent > 0 && __builtin_mul_overflow(counted, extent, &counted)))
            is_countable = false;
        PyObject *number = PyLong_FromLongLong(extent);
        if (number == NULL || PyTuple_SetItem(shape, d, number) < 0)
            Py_CLEAR(shape);
    }
    *bytes = !is_countable ? TOO_MANY : is_empty ? 0 : counted;
    return shape;
}

/* The memory of an output is there and has so many bytes; false with an exception. */
static bool has_memory(PyObject *object, const tw_seat *seat, int64_t buffer, int64_t bytes) {
    if (bytes == TOO_MANY)
        fail(object, seat, (tw_trouble){TW_BAD_BYTES, buffer, bytes});
    else if (seat->frame->pointers[buffer] == NULL)
        fail(object, seat, (tw_trouble){TW_NO_BUFFER, -1, buffer});
    else if (bytes > seat->frame->bytes[buffer])
        fail(object, seat, (tw_trouble){TW_BAD_BOUNDS, buffer, bytes});
    else
        return true;
    return false;
}

static PyObject *fetch_output(PyObject *object, tw_seat *seat, Py_ssize_t port) {
    tw_program_object *self = tw_as_program(object);
    const tw_param *param = &self->outputs.params.items[port];
    int64_t buffer = self->outputs.buffers[port], bytes;
    PyObject *shape = shape_of(param, seat->frame->sizes, &bytes), *array = NULL, *memory = NULL;
    if (shape != NULL && has_memory(object, seat, buffer, bytes)) {
        void *made = tw_frame_take(seat->frame, buffer);
        memory = made != NULL ? tw_memory_adopt(made, (Py_ssize_t)seat->frame->bytes[buffer])
                              : copy_of(seat->frame->pointers[buffer], bytes);
    }
    if (memory != NULL)
        array = PyObject_CallFunctionObjArgs(tw_ndarray(), shape, param->dtype, memory, NULL);
    Py_XDECREF(shape);
    Py_XDECREF(memory);
    return array;
}

static PyObject *fetch_outputs(PyObject *object, tw_seat *seat) {
    Py_ssize_t count = tw_as_program(object)->outputs.params.count;
    PyObject *arrays = PyList_New(count);
    for (Py_ssize_t i = 0; arrays != NULL && i < count; i++) {
        PyObject *array = fetch_output(object, seat, i);
        if (array == NULL || PyList_SetItem(arrays, i, array) < 0)
            Py_CLEAR(arrays);
    }
    return arrays;
}

/* Bring what was computed elsewhere to the arrays of the caller; -1 with an exception. */
static int copy_outputs(PyObject *object, tw_seat *seat) {
    tw_program_object *self = tw_as_program(object);
    for (Py_ssize_t i = 0; i < self->outputs.params.count; i++) {
        int64_t buffer = self->outputs.buffers[i];
        bool is_elsewhere = seat->is_copied[i] || seat->frame->made[buffer] != NULL;
        if (!seat->is_given[i] || !is_elsewhere)
            continue;
        const tw_param *param = &self->outputs.params.items[i];
        const Py_buffer *view = &seat->outputs[i];
        for (int d = 0; d < param->rank; d++)
            if (view->shape[d] != extent_of(param, d, seat->frame->sizes)) {
                fail(object, seat, (tw_trouble){TW_BAD_OUTPUT, i, d});
                return -1;
            }
        if (!has_memory(object, seat, buffer, view->len))
            return -1;
        if (view->len > 0)
            memcpy(view->buf, seat->frame->pointers[buffer], (size_t)view->len);
    }
    return 0;
}

/* 1: done; 0: declined; -1: exception. */
static int infer(PyObject *object, tw_seat *seat, PyObject *feeds, PyObject *outputs) {
    tw_program_object *self = tw_as_program(object);
    int good = take_inputs(self, seat, feeds);
    if (good == 1 && outputs != NULL)
        good = take_outputs(self, seat, outputs);
    if (good == 1)
        good = bind_sizes(self, seat, outputs != NULL);
    if (good == 1)
        good = walk(object, seat);
    if (good == 1 && outputs != NULL)
        good = copy_outputs(object, seat) < 0 ? -1 : 1;
    return good;
}

static bool is_ready(PyObject *object) {
    if (tw_as_program(object)->program != NULL)
        return true;
    PyErr_SetString(PyExc_TypeError, "the program has not been initialised");
    return false;
}

PyObject *tw_inference_run(PyObject *object, PyObject *feeds) {
    tw_program_object *self = tw_as_program(object);
    tw_seat *seat = is_ready(object) ? tw_seat_take(self) : NULL;
    if (seat == NULL)
        return NULL;
    int good = infer(object, seat, feeds, NULL);
    PyObject *arrays = good == 1 ? fetch_outputs(object, seat) : NULL;
    tw_seat_leave(self, seat);
    if (good == 0)
        arrays = PyObject_CallMethod(object, "_run_slowly", "(O)", feeds);
    if (arrays == NULL)
        tw_trim_traceback(object);
    return arrays;
}

/* 1: done; 0: declined; -1: exception. */
static int infer_into(PyObject *object, PyObject *feeds, PyObject *outputs) {
    tw_program_object *self = tw_as_program(object);
    tw_seat *seat = is_ready(object) ? tw_seat_take(self) : NULL;
    if (seat == NULL)
        return -1;
    int good = infer(object, seat, feeds, outputs);
    tw_seat_leave(self, seat);
    return good;
}

PyObject *tw_inference_run_into(PyObject *object, PyObject *args) {
    PyObject *feeds, *outputs;
    if (!PyArg_ParseTuple(args, "OO:run_into", &feeds, &outputs))
        return NULL;
    int good = infer_into(object, feeds, outputs);
    PyObject *nothing = good == 1 ? Py_NewRef(Py_None) : NULL;
    if (good == 0)
        nothing = PyObject_CallMethod(object, "_run_into_slowly", "OO", feeds, outputs);
    if (nothing == NULL)
        tw_trim_traceback(object);
    return nothing;
}

static bool start_profile(tw_frame *frame) {
    int64_t room = 2 * frame->program->tables.step_count + 16;
    frame->events = malloc((size_t)room * sizeof *frame->events);
    frame->event_room = frame->events != NULL ? room : 0;
    return frame->events != NULL;
}

static void end_profile(tw_frame *frame) {
    free(frame->events);
    frame->events = NULL;
    frame->event_room = 0;
}

PyObject *tw_inference_try(PyObject *object, PyObject *feeds) {
    tw_program_object *self = tw_as_program(object);
    tw_seat *seat = is_ready(object) ? tw_seat_take(self) : NULL;
    if (seat == NULL)
        return NULL;
    int good = infer(object, seat, feeds, NULL);
    PyObject *arrays = good == 0 ? Py_NewRef(Py_None) : NULL;
    if (good == 1)
        arrays = fetch_outputs(object, seat);
    tw_seat_leave(self, seat);
    return arrays;
}

PyObject *tw_inference_try_into(PyObject *object, PyObject *args) {
    PyObject *feeds, *outputs;
    if (!PyArg_ParseTuple(args, "OO:_try_run_into", &feeds, &outputs))
        return NULL;
    int good = infer_into(object, feeds, outputs);
    return good < 0 ? NULL : Py_NewRef(good == 0 ? Py_None : Py_True);
}

/* (arrays, events, sizes) of what has been run. */
static PyObject *report(PyObject *object, tw_seat *seat) {
    const tw_frame *frame = seat->frame;
    Py_ssize_t bytes = (Py_ssize_t)((size_t)frame->event_count * sizeof *frame->events);
    PyObject *arrays = fetch_outputs(object, seat);
    PyObject *events = PyBytes_FromStringAndSize((const char *)frame->events, bytes);
    PyObject *sizes = tuple_of_sizes(seat);
    PyObject *all = arrays && events && sizes ? PyTuple_Pack(3, arrays, events, sizes) : NULL;
    Py_XDECREF(arrays);
    Py_XDECREF(events);
    Py_XDECREF(sizes);
    return all;
}

PyObject *tw_inference_profile(PyObject *object, PyObject *feeds) {
    tw_program_object *self = tw_as_program(object);
    tw_seat *seat = is_ready(object) ? tw_seat_take(self) : NULL;
    if (seat == NULL)
        return NULL;
    PyObject *answer = NULL;
    if (!start_profile(seat->frame)) {
        PyErr_NoMemory();
    } else {
        int good = infer(object, seat, feeds, NULL);
        answer = good == 1 ? report(object, seat) : good == 0 ? Py_NewRef(Py_None) : NULL;
        end_profile(seat->frame);
    }
    tw_seat_leave(self, seat);
    return answer;
}
