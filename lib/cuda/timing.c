/*
 * timing.c - times calls of attest_run between two events on the GPU: captured into a graph, so that the host's part does not
 * count.
 */
#include "device.h"

/* What is made for one timing, and unmade whatever happens. */
struct timing {
    struct gpu *gpu;
    struct text why;
    cu_stream stream;
    cu_event from, to;
    cu_graph graph;
    cu_graph_exec exec;
};

static attest_status check(struct timing *x, cu_result result, const char *what)
{
    return gpu_result(x->gpu, result, what, x->why);
}

/* A capture that was begun is ended, also if a call could not be captured. */
static attest_status capture(struct timing *x, attest_context *context, const attest_cuda_call *calls, int count)
{
    const struct driver *driver = x->gpu->driver;
    attest_status status = ATTEST_OK;
    TRY(check(x, driver->capture_begin(x->stream, CU_CAPTURE_OF_THREAD), "a graph cannot be captured"));
    for (int i = 0; i < count && status == ATTEST_OK; i++)
        status =
            attest_run(context, calls[i].plan, calls[i].tensors, calls[i].workspace, (size_t)calls[i].workspace_size, x->stream);
    cu_result result = driver->capture_end(x->stream, &x->graph);
    TRY(status);
    TRY(check(x, result, "the calls cannot be captured into a graph"));
    return check(x, driver->graph_instantiate(&x->exec, x->graph, 0), "the graph cannot be made ready");
}

static attest_status replay(struct timing *x, int count, int replays, double *seconds)
{
    const struct driver *driver = x->gpu->driver;
    float milliseconds = 0;
    TRY(check(x, driver->graph_launch(x->exec, x->stream), "the graph cannot be launched"));
    TRY(check(x, driver->stream_wait(x->stream), "the calls failed on the GPU"));
    TRY(check(x, driver->event_record(x->from, x->stream), "an event cannot be recorded"));
    for (int i = 0; i < replays; i++)
        TRY(check(x, driver->graph_launch(x->exec, x->stream), "the graph cannot be launched"));
    TRY(check(x, driver->event_record(x->to, x->stream), "an event cannot be recorded"));
    TRY(check(x, driver->stream_wait(x->stream), "the calls failed on the GPU"));
    TRY(check(x, driver->event_elapsed(&milliseconds, x->from, x->to), "the time cannot be read"));
    *seconds = (double)milliseconds / 1e3 / replays / count;
    return ATTEST_OK;
}

static attest_status measure(struct timing *x, attest_context *context, const attest_cuda_call *calls, int count, int replays,
                             double *seconds)
{
    const struct driver *driver = x->gpu->driver;
    TRY(check(x, driver->stream_create(&x->stream, CU_STREAM_APART), "a stream cannot be made"));
    TRY(check(x, driver->event_create(&x->from, 0), "an event cannot be made"));
    TRY(check(x, driver->event_create(&x->to, 0), "an event cannot be made"));
    TRY(capture(x, context, calls, count));
    return replay(x, count, replays, seconds);
}

attest_status attest_cuda_time(attest_context *context, const attest_cuda_call *calls, int count, int replays, double *seconds)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    TRY(context_ready(context));
    if (!context->gpu)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "attest_cuda_time needs an NVIDIA GPU, and this context is on the CPU");
    if (!calls || !seconds || count < 1 || replays < 1)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s",
                    !calls     ? "calls is NULL"
                    : !seconds ? "seconds is NULL"
                               : "count and replays must be 1 or more");
    struct timing x = {.gpu = context->gpu, .why = why};
    const struct driver *driver = context->gpu->driver;
    bool pushed;
    TRY(gpu_enter(x.gpu, &pushed, why));
    attest_status status = measure(&x, context, calls, count, replays, seconds);
    if (x.exec)
        driver->graph_exec_destroy(x.exec);
    if (x.graph)
        driver->graph_destroy(x.graph);
    if (x.to)
        driver->event_destroy(x.to);
    if (x.from)
        driver->event_destroy(x.from);
    if (x.stream)
        driver->stream_destroy(x.stream);
    gpu_leave(x.gpu, pushed);
    return status;
}
