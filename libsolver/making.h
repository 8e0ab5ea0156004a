// Classes made side by side on all threads, within a limit of memory.
#ifndef LIMBER_SOLVER_MAKING_H
#define LIMBER_SOLVER_MAKING_H

#include "libmodes/modes.h"

// ---- memory --------------------------------------------------------------------------------------------------------

// A limit of memory that classes are made in. What making one takes is estimated before it is begun, from the analysis
// of its factor and the sizes of its arrays; one that does not fit beside those at work waits for them, and one that
// does not fit at all is refused. What the process holds besides counts too.
typedef struct solver_room solver_room;
fem_status                 solver_room_create(solver_room **room, double bytes);
void                       solver_room_destroy(solver_room *room); // accepts NULL

typedef struct solver_room_report {
    double limit;
    double most;    // bytes at once, by estimate
    int    largest; // classes at once
    int    made;
} solver_room_report;
solver_room_report solver_room_get_report(solver_room *room);

// What a class is made of.
typedef struct solver_need {
    const fem_mesh      *mesh;
    const fem_sparse    *K;
    const unsigned char *fixed; // 3 per vertex, or NULL
    const modes_recipe  *recipe;
    int                  modes;      // columns of its basis
    bool                 polynomial; // has it polynomial forces?
    bool                 direct;     // is its matrix factorised whatever its size?
    double               more;       // bytes that its caller needs besides
} solver_need;
// Bytes that making it takes, and that it holds afterwards.
fem_status solver_need_bytes(const solver_need *need, double *bytes, double *kept);

// Around the making of a class. Classes come in one by one: `enter`, find out whether there is anything to make, `take`
// what it needs, which may wait, and `leave` with what it took (0: nothing was made). NULL: there is no limit.
void       solver_room_enter(solver_room *room);
fem_status solver_room_take(solver_room *room, double bytes);
void       solver_room_leave(solver_room *room, double bytes, double kept);

// ---- threads -------------------------------------------------------------------------------------------------------

typedef struct solver_job {
    int  elements; // how large it is
    int  level;    // it comes after all of the levels below
    bool serial;   // it may not run beside another one that is: ARPACK keeps state between its calls
} solver_job;

typedef struct solver_making {
    int               count;
    const solver_job *jobs;
    const char       *stage; // as progress calls it
    fem_status (*make)(void *context, int job);
    void *context;
} solver_making;
// Level by level: large jobs one after the other, each on all threads, then the others side by side, largest first.
// When some fail, the message is that of the first.
fem_status solver_make(const solver_making *making, const fem_progress *progress);

#endif
