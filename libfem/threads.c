// Clock, and one parallel-for over a pool of threads that is started at first use.
#include "libfem/base.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
double fem_seconds(void) { return seconds_of(CLOCK_MONOTONIC); }
double fem_cpu_seconds(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

enum { MOST_WORKERS = 256 };

static struct {
    pthread_mutex_t caller; // one parallel-for at a time
    pthread_mutex_t lock;   // guards what follows
    pthread_cond_t  start, finish;
    int             started; // helper threads that exist
    long            round;   // number of the current parallel-for
    int             helpers; // helpers that take part in it
    int             active;  // helpers still at work
    fem_task        task;
    void           *context;
    int             count;
    atomic_int      next; // next index to be taken
} pool = {.caller = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .start = PTHREAD_COND_INITIALIZER,
          .finish = PTHREAD_COND_INITIALIZER};

static atomic_int         wanted_threads; // 0: one per core
static _Thread_local bool inside_task;

void fem_set_threads(int threads) {
    atomic_store(&wanted_threads, threads < 0 ? 0 : threads > MOST_WORKERS ? MOST_WORKERS : threads);
}

// Cores that this process may run on: taskset and containers give it fewer than the machine has. Asking takes the
// system longer than a short parallel-for, so it is asked once.
static int available_cores(void) {
    static atomic_int known;
    int               cores = atomic_load(&known);
    if (cores > 0) return cores;
    cpu_set_t set;
    cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    cores = cores < 1 ? 1 : cores > MOST_WORKERS ? MOST_WORKERS : cores;
    atomic_store(&known, cores);
    return cores;
}

int fem_threads(void) {
    int threads = atomic_load(&wanted_threads);
    return threads > 0 ? threads : available_cores();
}

static void take_indices(int worker) {
    inside_task = true;
    for (;;) {
        int index = atomic_fetch_add(&pool.next, 1);
        if (index >= pool.count) break;
        pool.task(pool.context, index, worker);
    }
    inside_task = false;
}

static void *helper_main(void *argument) {
    int  worker = (int)(ptrdiff_t)argument; // 1, 2, ...; the caller is worker 0
    long seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.round == seen || worker > pool.helpers) {
            seen = pool.round;
            pthread_cond_wait(&pool.start, &pool.lock);
        }
        seen = pool.round;
        pthread_mutex_unlock(&pool.lock);
        take_indices(worker);
        pthread_mutex_lock(&pool.lock);
        if (--pool.active == 0) pthread_cond_signal(&pool.finish);
    }
    return NULL;
}

// Starts helpers up to the wanted number; fewer when the system refuses.
static int available_helpers(int wanted) {
    while (pool.started < wanted) {
        pthread_t      thread;
        pthread_attr_t attributes;
        if (pthread_attr_init(&attributes) != 0) break;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&thread, &attributes, helper_main, (void *)(ptrdiff_t)(pool.started + 1));
        pthread_attr_destroy(&attributes);
        if (failed) break;
        pool.started++;
    }
    return pool.started < wanted ? pool.started : wanted;
}

void fem_parallel_for(int count, fem_task task, void *context) {
    int workers = fem_threads();
    if (workers > count) workers = count;
    if (workers <= 1 || inside_task || pthread_mutex_trylock(&pool.caller) != 0) {
        for (int i = 0; i < count; i++) task(context, i, 0);
        return;
    }
    pthread_mutex_lock(&pool.lock);
    pool.task = task;
    pool.context = context;
    pool.count = count;
    atomic_store(&pool.next, 0);
    pool.helpers = pool.active = available_helpers(workers - 1);
    pool.round++;
    pthread_cond_broadcast(&pool.start);
    pthread_mutex_unlock(&pool.lock);

    take_indices(0);

    pthread_mutex_lock(&pool.lock);
    while (pool.active > 0) pthread_cond_wait(&pool.finish, &pool.lock);
    pool.helpers = 0;
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&pool.caller);
}
