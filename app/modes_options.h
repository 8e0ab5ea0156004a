// How `limber modes` is told which basis to make.
#ifndef LIMBER_APP_MODES_OPTIONS_H
#define LIMBER_APP_MODES_OPTIONS_H

#include "app/app.h"

// What is not given is NULL, 0 or NAN.
typedef struct modes_settings {
    const char *method;                                // lanczos
    const char *kind, *condense, *scaling, *metric;    // of derivatives; kind follows the method
    const char *seeds, *vectors, *orthogonalise;       // of Krylov modes
    const char *norm;                                  // of interface seeds
    const char *border, *inverse;                      // of K^-1
    const char *fix;                                   // FILE or set:NAME; not given: a free body
    const char *load_file;                             // of a sketch: a load in each line
    const char *linear;                                // "N", "N,N2", "N,N2,N3": of orders 1, 2, 3
    int         count, derivatives, samples;           //
    int         fields, random_state, interface_seeds; // of Krylov modes
    double      energy, threshold, tolerance, distance;
    app_list    interfaces; // "SET" or "SET:KG"
    app_list    loads;      // of a sketch, "WHERE:fx,fy,fz"
} modes_settings;
modes_settings modes_settings_default(void);

// The recipe that is meant, without interfaces. Returns APP_DONE or, after a message, APP_BAD_INPUT.
int modes_settings_recipe(const modes_settings *settings, modes_recipe *recipe);

// Marks all three degrees of freedom of the vertices in a file, or of the set behind "set:".
fem_status modes_read_fixed(const fem_mesh *mesh, const char *fix, unsigned char *fixed);
// Vertex sets, and the mass in kg that hangs on each (1 where none is given).
fem_status modes_read_interfaces(const fem_mesh *mesh, const app_list *names, modes_interface *interfaces);
// Seeds of the user's: n x *count, allocated; checked to be of this mesh.
fem_status modes_read_vectors(const fem_mesh *mesh, const char *path, double **vectors, int *count);
// The loads of a sketch, from the file and then from the list: n x *count, allocated. "WHERE:fx,fy,fz": a vertex set or
// a vertex number, and the total force in N; those in one line of the file act together.
fem_status modes_read_loads(const fem_mesh *mesh, const char *path, const app_list *list, double **loads, int *count);

#endif
