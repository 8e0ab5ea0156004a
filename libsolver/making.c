// Classes made side by side: see making.h.
#include "libsolver/making.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// ---- memory --------------------------------------------------------------------------------------------------------

struct solver_room {
    pthread_mutex_t    door;    // held from `enter` on until the class has what it needs
    pthread_mutex_t    lock;    // of what follows
    pthread_cond_t     left;    // some class has left
    double             held;    // by the process when no class was at work, and by those made since
    double             besides; // code and libraries
    double             taken;
    int                running;
    solver_room_report report;
};

// Code and libraries of the process that are resident; 0 where the system does not tell. What was freed but is still
// resident does not count: it is used again.
static double code_bytes(void) {
    long  all, resident, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%ld %ld %ld", &all, &resident, &shared) != 3) shared = 0;
    fclose(file);
    return (double)shared * (double)sysconf(_SC_PAGESIZE);
}

fem_status solver_room_create(solver_room **made, double bytes) {
    solver_room *room = fem_calloc(1, sizeof *room);
    if (!room) return fem_fail(FEM_NO_MEMORY, "no memory for a limit of memory");
    pthread_mutex_init(&room->door, NULL);
    pthread_mutex_init(&room->lock, NULL);
    pthread_cond_init(&room->left, NULL);
    room->report.limit = bytes;
    room->besides = code_bytes();
    *made = room;
    return FEM_OK;
}

void solver_room_destroy(solver_room *room) {
    if (!room) return;
    pthread_mutex_destroy(&room->door);
    pthread_mutex_destroy(&room->lock);
    pthread_cond_destroy(&room->left);
    fem_free(room);
}

solver_room_report solver_room_get_report(solver_room *room) {
    pthread_mutex_lock(&room->lock);
    solver_room_report report = room->report;
    pthread_mutex_unlock(&room->lock);
    return report;
}

void solver_room_enter(solver_room *room) {
    if (room) pthread_mutex_lock(&room->door);
}

fem_status solver_room_take(solver_room *room, double bytes) {
    fem_status status = FEM_OK;
    if (!room) return FEM_OK;
    pthread_mutex_lock(&room->lock);
    solver_room_report *r = &room->report;
    while (room->running > 0 && room->held + room->taken + bytes > r->limit)
        pthread_cond_wait(&room->left, &room->lock);
    if (room->running == 0) room->held = room->besides + (double)fem_memory_bytes();
    double all = room->held + room->taken + bytes;
    if (all > r->limit)
        status =
            fem_fail(FEM_BAD_INPUT,
                     "its class takes about %.4g MB to make, and %.4g MB are held already, but the limit of memory is "
                     "%.4g MB; a higher limit or fewer modes would do",
                     1e-6 * bytes, 1e-6 * room->held, 1e-6 * r->limit);
    else {
        room->taken += bytes;
        room->running++;
        r->made++;
        r->most = fmax(r->most, all);
        r->largest = r->largest > room->running ? r->largest : room->running;
    }
    pthread_mutex_unlock(&room->lock);
    if (status == FEM_OK) pthread_mutex_unlock(&room->door);
    return status;
}

void solver_room_leave(solver_room *room, double bytes, double kept) {
    if (!room) return;
    if (bytes == 0) {
        pthread_mutex_unlock(&room->door);
        return;
    }
    pthread_mutex_lock(&room->lock);
    room->taken -= bytes;
    room->held += kept;
    room->running--;
    pthread_cond_broadcast(&room->left);
    pthread_mutex_unlock(&room->lock);
}

// Sizes of arrays as their owners allocate them; what is small beside these, work space of a few vectors and the fixed
// sizes of threads, is in the last term. tests/test_making.c holds it against what is allocated.
fem_status solver_need_bytes(const solver_need *need, double *bytes, double *kept) {
    fem_status   status = FEM_OK;
    fem_factor  *factor = NULL;
    modes_recipe recipe = *need->recipe;
    double       n = 3.0 * need->mesh->vertex_count, r = need->modes, candidates = 0, factored = 0;
    double       corners = (double)need->mesh->element_count * fem_element_vertices(need->mesh->type);
    double       matrix = 76.0 * need->K->blocks + 4.0 * need->K->n;
    int          solves;
    recipe.count = need->modes;
    if (recipe.linear == 0 || recipe.linear > recipe.count) recipe.linear = (2 * recipe.count + 2) / 3;
    FEM_TRY(modes_recipe_bytes(&recipe, (int)n, &solves, &candidates));
    if (need->direct || modes_inverse_choose((int)n, solves) == MODES_INVERSE_FACTOR) {
        FEM_TRY(fem_factor_create(&factor, need->K, need->fixed));
        factored = fem_factor_get_report(factor).bytes + 8 * fem_factor_get_report(factor).entries;
        factored += 8.0 * 9 * need->K->blocks; // the matrix as it is handed over
    } else
        factored = 3 * matrix; // multigrid
    double coefficients = need->polynomial ? 8 * (r + 4) * (r + 3) * (r + 2) * (r + 1) / 24 : 0;
    double body = 8 * 24 * n + 16 * corners;
    *kept = body + 8 * n * (r + 24) + 4 * coefficients;
    *bytes = *kept + 2 * matrix + factored + candidates + 8 * n * (2 * r + 3 * recipe.linear + 40) +
             (need->polynomial ? 12 * coefficients : 0) + need->more + 4e6;
done:
    fem_factor_destroy(factor);
    return status;
}

// ---- threads -------------------------------------------------------------------------------------------------------

typedef struct making_state {
    const solver_making *making;
    const fem_progress  *progress;
    const int           *order; // jobs that run side by side
    atomic_int           done;
    atomic_bool          failed;
    fem_status          *status; // per job
    char (*message)[512];        // per job
} making_state;

static void run_job(making_state *m, int job, bool report) {
    fem_status status = FEM_OK;
    if (atomic_load(&m->failed)) return;
    if (report)
        status = fem_progress_report(m->progress, m->making->stage, (double)atomic_load(&m->done) / m->making->count);
    if (status == FEM_OK) status = m->making->make(m->making->context, job);
    m->status[job] = status;
    if (status != FEM_OK) {
        snprintf(m->message[job], sizeof m->message[job], "%s", fem_message());
        atomic_store(&m->failed, true);
    }
    atomic_fetch_add(&m->done, 1);
}

static void job_task(void *context, int index, int worker) {
    making_state *m = context;
    run_job(m, m->order[index], worker == 0);
}

typedef struct sorted_job {
    solver_job job;
    bool       alone; // one after the other, on all threads
    int        index;
} sorted_job;

static int compare_jobs(const void *first, const void *second) {
    const sorted_job *a = first, *b = second;
    if (a->job.level != b->job.level) return a->job.level < b->job.level ? -1 : 1;
    if (a->alone != b->alone) return a->alone ? -1 : 1;
    if (a->job.elements != b->job.elements) return a->job.elements > b->job.elements ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

fem_status solver_make(const solver_making *making, const fem_progress *progress) {
    fem_status   status = FEM_OK;
    size_t       count = (size_t)making->count;
    making_state m = {.making = making, .progress = progress};
    double       elements = 0;
    sorted_job  *sorted = fem_alloc(count, sizeof *sorted);
    int         *order = fem_alloc(count, sizeof *order);
    m.status = fem_calloc(count, sizeof *m.status);
    m.message = fem_calloc(count, sizeof *m.message);
    if (!sorted || !order || !m.status || !m.message) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu classes", count);
        goto done;
    }
    for (size_t i = 0; i < count; i++) elements += making->jobs[i].elements;
    for (size_t i = 0; i < count; i++)
        sorted[i] = (sorted_job){making->jobs[i],
                                 making->jobs[i].serial || making->jobs[i].elements > elements / fem_threads(), (int)i};
    qsort(sorted, count, sizeof *sorted, compare_jobs);
    for (size_t i = 0; i < count; i++) order[i] = sorted[i].index;
    for (size_t i = 0, next; i < count && !atomic_load(&m.failed); i = next) {
        next = i + 1;
        if (sorted[i].alone) {
            run_job(&m, order[i], true);
            continue;
        }
        while (next < count && !sorted[next].alone && sorted[next].job.level == sorted[i].job.level) next++;
        m.order = order + i;
        fem_parallel_for((int)(next - i), job_task, &m);
    }
    for (size_t i = 0; i < count; i++)
        if (m.status[i] != FEM_OK) {
            status = fem_fail(m.status[i], "%s", m.message[i]);
            goto done;
        }
    FEM_TRY(fem_progress_report(progress, making->stage, 1));
done:
    fem_free(sorted), fem_free(order), fem_free(m.status), fem_free(m.message);
    return status;
}
