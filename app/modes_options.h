// How `limber modes` is told which basis to make.
#ifndef LIMBER_APP_MODES_OPTIONS_H
#define LIMBER_APP_MODES_OPTIONS_H

#include "app/app.h"

typedef struct modes_settings {
    const char *method, *condense, *kind, *seeds, *orthogonalise, *border, *inverse; // kind NULL: follows the method
    const char *fix;                                                                 // FILE or set:NAME, NULL: free
    int         count, linear, derivatives, samples;
    double      energy, threshold;
    app_list    interfaces; // vertex sets
    app_list    loads;      // of a sketch, "WHERE:fx,fy,fz"
} modes_settings;
modes_settings modes_settings_default(void);

// The recipe that is meant, without interfaces. Returns APP_DONE or, after a message, APP_BAD_INPUT.
int modes_settings_recipe(const modes_settings *settings, modes_recipe *recipe);

// Marks all three degrees of freedom of the vertices in a file, or of the set behind "set:".
fem_status modes_read_fixed(const fem_mesh *mesh, const char *fix, unsigned char *fixed);
fem_status modes_read_interfaces(const fem_mesh *mesh, const app_list *names, modes_interface *interfaces);
// force: 3 per vertex, zero before. "WHERE:fx,fy,fz": a vertex set or a vertex number, and the total force in N.
fem_status modes_read_load(const fem_mesh *mesh, const char *load, double *force);

#endif
