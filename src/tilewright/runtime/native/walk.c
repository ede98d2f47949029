#include "walk.h"

#include <stdlib.h>
#include <string.h>

#include "barrier.h"
#include "pool.h"
#include "timer.h"

#define STOPPED 1 /* returned to the pool by who leaves before the others */

static void no_barrier(tw_context *context) { (void)context; }

/* The first thread that fails says why. */
static bool give_up(tw_frame *frame, tw_outcome outcome, int64_t which, int64_t value) {
    if (!atomic_exchange(&frame->is_broken, true))
        tw_fail(frame, outcome, which, value);
    return false;
}

/* Where arrays without elements are: nobody reads or writes there. */
static char nowhere[TW_ALIGNMENT];

/* Arguments of a call; 1: run it, 0: its result has no elements, -1: impossible. The result is the
 * last buffer. Sizes of zero alone are no reason to leave a call out: a sum over nothing is zero. */
static int gather(tw_frame *frame, int64_t at, void **buffers, int64_t *sizes) {
    const tw_tables *tables = &frame->program->tables;
    const tw_step *step = &tables->steps[at];
    const int64_t *numbers = tables->numbers + step->first.start;
    int64_t count = step->first.count;
    if (count > 0 && frame->bytes[numbers[count - 1]] == 0)
        return 0;
    const int64_t *taken = tables->numbers + step->second.start;
    for (int64_t i = 0; i < step->second.count; i++) {
        sizes[i] = frame->sizes[taken[i]];
        if (sizes[i] < 0) {
            give_up(frame, TW_BAD_READ, taken[i], sizes[i]);
            return -1;
        }
    }
    for (int64_t i = 0; i < count; i++) {
        buffers[i] = frame->pointers[numbers[i]];
        if (buffers[i] == NULL && frame->bytes[numbers[i]] == 0)
            buffers[i] = nowhere;
        if (buffers[i] == NULL) {
            give_up(frame, TW_NO_BUFFER, at, numbers[i]);
            return -1;
        }
    }
    return 1;
}

static bool run_call(tw_frame *frame, int64_t at, const tw_context *team) {
    const tw_program *program = frame->program;
    const tw_code *kernel = &program->tables.kernels[program->tables.steps[at].what];
    int32_t thread = team->thread;
    bool is_shared = kernel->is_parallel && !frame->is_small[at];
    if (thread > 0 && !is_shared)
        return true;
    char *arguments = frame->arguments + (size_t)thread * frame->arguments_bytes;
    void **buffers = (void **)(void *)arguments;
    int64_t *sizes = (int64_t *)(void *)(buffers + program->max_arguments);
    int state = gather(frame, at, buffers, sizes);
    if (state <= 0)
        return state == 0;
    char *scratch = frame->scratch.data;
    tw_context context = {.threads = 1, .barrier = no_barrier};
    if (is_shared)
        context = *team;
    context.shared = scratch;
    context.local = scratch + frame->shared_bytes + (size_t)thread * frame->local_bytes;
    int32_t result = ((tw_kernel)(uintptr_t)kernel->entry)(buffers, sizes, &context);
    return result == 0 || give_up(frame, TW_FAILED_CALL, at, result);
}

/* Out of memory means that the record ends here; the inference goes on. */
void tw_note(tw_frame *frame, int64_t step, int64_t begin_ns) {
    if (frame->events == NULL)
        return;
    if (frame->event_count == frame->event_room) {
        int64_t room = 2 * frame->event_room;
        tw_event *events = realloc(frame->events, (size_t)room * sizeof *events);
        if (events == NULL)
            return;
        frame->events = events;
        frame->event_room = room;
    }
    frame->events[frame->event_count++] = (tw_event){step, begin_ns, tw_clock_ns()};
}

static bool run_batch(tw_frame *frame, int64_t begin, int64_t end, const tw_context *context) {
    bool is_timed = context->thread == 0 && frame->events != NULL;
    for (int64_t at = begin; at < end; at++) {
        int64_t begin_ns = is_timed ? tw_clock_ns() : 0;
        if (!run_call(frame, at, context))
            return false;
        if (is_timed)
            tw_note(frame, at, begin_ns);
    }
    return true;
}

static bool read_sizes(tw_frame *frame, const tw_step *step) {
    const int64_t *numbers = frame->program->tables.numbers + step->first.start;
    for (int64_t i = 0; i < step->first.count; i += 3) {
        int64_t size = numbers[i], buffer = numbers[i + 1], element = numbers[i + 2], value;
        const char *memory = frame->pointers[buffer];
        if (memory == NULL || element >= frame->bytes[buffer] / 8)
            return give_up(frame, TW_NO_BUFFER, frame->at, buffer);
        memcpy(&value, memory + element * 8, sizeof value);
        if (value < 0)
            return give_up(frame, TW_BAD_READ, size, value);
        frame->sizes[size] = value;
    }
    return true;
}

static bool enter(tw_frame *frame, const tw_step *step) {
    if (!read_sizes(frame, step))
        return false;
    if (tw_frame_enter(frame, step->what))
        return true;
    atomic_store(&frame->is_broken, true);
    return false;
}

/* The value of a step's own expression. */
static bool compute(tw_frame *frame, const tw_step *step, int64_t *value) {
    const tw_expression expression = {step->first.start, step->first.count};
    return tw_evaluate(frame->program->tables.operations, expression, frame->sizes, value) ||
           give_up(frame, TW_BAD_STEP, step - frame->program->tables.steps, 0);
}

/* The step after a jump; -1 if that cannot be told. */
static int64_t follow(tw_frame *frame, int64_t at) {
    const tw_step *step = &frame->program->tables.steps[at];
    if (step->first.count > 0) {
        int64_t value;
        if (!compute(frame, step, &value))
            return -1;
        return value == 0 ? step->what : at + 1;
    }
    if (step->flag < 0)
        return step->what;
    const unsigned char *condition = frame->pointers[step->flag];
    if (condition == NULL || frame->bytes[step->flag] < 1) {
        give_up(frame, TW_NO_BUFFER, at, step->flag);
        return -1;
    }
    return *condition == 0 ? step->what : at + 1;
}

typedef enum progress { GO_ON, AT_END, NEEDS_TEAM, AT_HOST, BROKEN } progress;

/* One step of control, at `frame->at`, while no other thread runs anything. */
static progress control(tw_frame *frame) {
    const tw_step *step = &frame->program->tables.steps[frame->at];
    if (step->kind == TW_HOST)
        return AT_HOST;
    int64_t next = frame->at + 1;
    int64_t begin_ns = frame->events != NULL ? tw_clock_ns() : 0;
    if (step->kind == TW_JUMP)
        next = follow(frame, frame->at);
    else if (step->kind == TW_ASSIGN) {
        if (!compute(frame, step, &frame->sizes[step->what]))
            next = -1;
    } else if (!enter(frame, step))
        next = -1;
    if (next < 0)
        return BROKEN;
    tw_note(frame, frame->at, begin_ns);
    frame->at = next;
    return GO_ON;
}

/* Whether a batch has something for a team. */
static bool needs_team(const tw_frame *frame, int64_t begin) {
    const tw_program *program = frame->program;
    const tw_batch *batch = &program->batches[begin];
    if (!batch->is_parallel || program->threads == 1)
        return false;
    for (int64_t at = begin; at < batch->end; at++) {
        const tw_step *step = &program->tables.steps[at];
        if (program->tables.kernels[step->what].is_parallel && !frame->is_small[at])
            return true;
    }
    return false;
}

static progress walk_alone(tw_frame *frame, const tw_context *context) {
    const tw_program *program = frame->program;
    while (frame->at < program->tables.step_count) {
        const tw_batch *batch = &program->batches[frame->at];
        if (program->tables.steps[frame->at].kind != TW_CALL) {
            progress made = control(frame);
            if (made != GO_ON)
                return made;
        } else if (needs_team(frame, frame->at)) {
            return NEEDS_TEAM;
        } else {
            if (!run_batch(frame, frame->at, batch->end, context))
                return BROKEN;
            frame->at = batch->end;
        }
    }
    return AT_END;
}

static void announce(tw_frame *frame, int64_t turn, int64_t begin, const tw_batch *batch) {
    frame->turns[turn & 1] = (tw_turn){begin, batch->end, batch->is_final};
}

/* Thread 0 of a team, from a parallel batch on that the others know already. GO_ON: that was the
 * last one, the others go home, and what is left needs no team. */
static progress lead(tw_frame *frame, tw_context *context, int64_t *turn) {
    const tw_program *program = frame->program;
    bool is_announced = true, others_run = true;
    for (;;) {
        const tw_batch *batch = &program->batches[frame->at];
        bool is_call = program->tables.steps[frame->at].kind == TW_CALL;
        bool is_shared = is_call && needs_team(frame, frame->at);
        if (is_shared && !is_announced) {
            announce(frame, ++*turn, frame->at, batch);
            context->barrier(context);
            others_run = true;
        } else if (others_run && !is_announced) {
            tw_barrier_await_others(context->team, context->threads);
            others_run = false;
        }
        is_announced = false;
        if (atomic_load_explicit(&frame->is_broken, memory_order_relaxed))
            return BROKEN;
        if (!is_call) {
            progress made = control(frame);
            if (made != GO_ON)
                return made;
        } else {
            if (!run_batch(frame, frame->at, batch->end, context))
                return BROKEN;
            frame->at = batch->end;
            if (is_shared && batch->is_final)
                return GO_ON;
        }
        if (frame->at == program->tables.step_count)
            return AT_END;
    }
}

static int32_t follow_leader(tw_frame *frame, tw_context *context) {
    for (int64_t number = 0;; number++) {
        if (number > 0)
            context->barrier(context);
        tw_turn turn = frame->turns[number & 1];
        if (!run_batch(frame, turn.begin, turn.end, context))
            return STOPPED;
        if (turn.is_last)
            return 0;
    }
}

typedef struct job {
    tw_frame *frame;
    progress made;
} job;

static int32_t run_alone(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    job *own = buffers[0];
    own->made = walk_alone(own->frame, context);
    return 0;
}

/* Who leaves early drops out of the barrier, which lets the others go on to a last, empty turn. */
static int32_t run_together(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    job *team = buffers[0];
    if (context->thread > 0)
        return follow_leader(team->frame, context);
    int64_t turn = 0;
    team->made = lead(team->frame, context, &turn);
    if (team->made == GO_ON)
        return 0;
    team->frame->turns[(turn + 1) & 1] = (tw_turn){.is_last = true};
    return STOPPED;
}

static progress run(tw_frame *frame, tw_kernel kernel, int32_t threads) {
    job own = {.frame = frame, .made = BROKEN};
    void *buffers[] = {&own};
    tw_launch launch = {.kernel = kernel, .buffers = buffers, .threads = threads};
    int32_t result = 0;
    tw_status status = tw_run(&launch, &result);
    if (status != TW_OK)
        give_up(frame, TW_FAILED_RUN, 0, status);
    return atomic_load(&frame->is_broken) ? BROKEN : own.made;
}

tw_outcome tw_walk(tw_frame *frame) {
    progress made = GO_ON;
    while (made == GO_ON) {
        made = run(frame, run_alone, 1);
        if (made != NEEDS_TEAM)
            continue;
        announce(frame, 0, frame->at, &frame->program->batches[frame->at]);
        made = run(frame, run_together, frame->program->threads);
    }
    if (made == AT_HOST)
        return TW_AT_HOST;
    return made == AT_END ? TW_DONE : frame->trouble.outcome;
}
