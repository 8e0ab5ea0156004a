// The ways in which the motion of a scene's body is computed, behind one face for the run.
#ifndef LIMBER_SCENE_MOTION_H
#define LIMBER_SCENE_MOTION_H

#include "libscene/internal.h"

// A piece of the body that moves as one frame with modes in it: x = p + Q (X + U q), X the vertices of its mesh.
typedef struct scene_limb {
    const char     *name;
    const fem_mesh *mesh;
    double        origin[3]; // where X = 0 is in the coordinates of the whole mesh at rest; of a forest, of the part's
    int           r;
    const double *U;     // 3 per vertex x r
    int           shape; // of a forest: limbs of one shape are copies, but for
    double        scale; // x = p + Q scale (X + U q); 0 means 1
} scene_limb;

// What every way offers; each begins with this struct.
typedef struct scene_motion scene_motion;
struct scene_motion {
    double        time;
    const double *u, *v; // 3 per vertex: displacement and velocity, as of the last `show`
    fem_status (*equilibrium)(scene_motion *motion, const fem_progress *progress); // NULL where there is none
    fem_status (*step)(scene_motion *motion, double time); // to that time, one step on; a failure leaves the state
    void (*show)(scene_motion *motion);
    void (*energies)(const scene_motion *motion, solver_energies *energies); // with the loads of the present time
    void (*report)(const scene_motion *motion, scene_result *result);
    void (*destroy)(scene_motion *motion);
    // the complete state as numbers, and a motion that has just been made brought there, where it was after `steps`
    size_t (*state_size)(const scene_motion *motion);
    void (*save)(const scene_motion *motion, double *numbers);
    fem_status (*restore)(scene_motion *motion, int steps, const double *numbers);
    // Before `restore`: makes the changes of these steps once more, on which the size depends. NULL: it is always the
    // same.
    fem_status (*repeat)(scene_motion *motion, int steps, size_t size, const double *numbers);
    // Of a stitched body: what was changed so far. Whoever takes them sets them to nothing.
    int           change_count;
    scene_change *changes;
    // The body as limbs, where its motion is that of frames and modes; else 0. Domains of a tree in their order.
    int limb_count;
    scene_limb (*limb)(const scene_motion *motion, int limb);
    const double *(*pose)(const scene_motion *motion, int limb, scene_pose *pose); // q; as of the last `show`
};

// The body must outlive the motion. `fixed`: 3 per vertex.
fem_status scene_motion_full(scene_motion **motion, const scene *s, const fem_body *body, const unsigned char *fixed);
// Held and free bodies in the modes of their part; *notes as in class.h.
fem_status scene_motion_reduced(scene_motion **motion, const scene *s, const fem_body *body,
                                const fem_progress *progress, char **notes);

// A body cut into domains.
fem_status scene_motion_tree(scene_motion **motion, const scene *s, const fem_body *body, const fem_progress *progress,
                             char **notes);
// The classes of a scene's domains, from its cache where they are there. `result` (may be NULL) gets what there is to
// know about them.
fem_status scene_assemble(solver_assembly **assembly, const scene *s, const fem_progress *progress, char **notes,
                          scene_result *result);
// What the user should know of the cut and of the coupled model: too few domains, frequencies that are off. `tree` is
// at rest, NULL: one is made. The lowest `count` frequencies are looked at.
enum { SCENE_MODEL_MODES = 10 };
fem_status scene_note_model(const scene *s, const solver_assembly *assembly, solver_tree *tree, int count,
                            char **notes);

// Instances of parts, likewise.
fem_status scene_motion_forest(scene_motion **motion, const scene *s, const fem_progress *progress, char **notes);
fem_status scene_make_forest(solver_forest **forest, const scene *s, const fem_progress *progress, char **notes,
                             scene_result *result);
fem_status scene_precompute_forest(const scene *s, solver_forest *forest, const fem_progress *progress, char **notes,
                                   scene_result *result);
void       scene_report_forest(const scene *s, const solver_forest *forest, scene_result *result);

// Contact of the domains of a tree with the obstacles of the scene (motion_contact.c): of the tree itself, implicit, or
// where its options do not allow that a load that stays over a step. Without obstacles the struct is zero.
typedef struct scene_contacts {
    const scene     *s;
    solver_tree     *tree;
    int              count; // domains
    solver_contact **contacts;
    bool             implicit;
    int              softened; // domains
    double          *work, *load;
} scene_contacts;
fem_status scene_contacts_create(scene_contacts *c, const scene *s, solver_tree *tree, int count, int most_modes);
// Samples in the size of the domain; its mass.
fem_status scene_contacts_add(scene_contacts *c, int domain, const solver_samples *samples, const double *Mqq,
                              double mass);
fem_status scene_contacts_note(const scene_contacts *c, const char *of, char **notes); // if some had to be softened
fem_status scene_contacts_apply(scene_contacts *c, double from, double to);            // before a step
void       scene_contacts_report(const scene_contacts *c, scene_result *result);
void       scene_contacts_destroy(scene_contacts *c); // before the tree
// Surface area at each vertex of a mesh, of all of its surface or of the triangles given. Caller frees.
fem_status scene_vertex_areas(const fem_mesh *mesh, int count, const int *triangles, double **areas);

// What the motions of trees have in common, be their pieces domains or instances (motion_loads.c); each begins with it.
typedef struct scene_tree_motion {
    scene_motion    base;
    const scene    *s;
    const fem_mesh *mesh; // of the whole
    solver_tree    *tree;
    int             loaded;   // vertices that loads act on
    int            *vertices; // those, ascending
    int            *points;   // and where the tree has them
    double         *loads;    // per action: 3 per loaded vertex
    double         *total;    // 3 per loaded vertex
    bool           *done;     // per action: this change of stiffness has been made
    scene_contacts  contacts;
    scene_wind     *wind;  // or NULL
    double         *u, *v; // 3 per vertex
    double          seconds;
    int             steps;
} scene_tree_motion;
// Fills what a motion does alike for all trees; `show`, `report` and `destroy` are its own.
fem_status scene_tree_motion_begin(scene_tree_motion *m, const scene *s);
// The loads, when the tree is there. `at` finds the point of the tree at a vertex, -1: there is none. The body may be
// NULL.
typedef fem_status scene_find_point(scene_tree_motion *m, int vertex, int *point);
fem_status         scene_tree_motion_load(scene_tree_motion *m, const fem_body *body, scene_find_point *at);
// Changes of stiffness up to a time that have not been made yet.
fem_status scene_tree_motion_stiffen(scene_tree_motion *m, double time);
void       scene_tree_motion_report(const scene_tree_motion *m, scene_result *result);
void       scene_tree_motion_end(scene_tree_motion *m); // frees what it holds, and the tree

void scene_report_assembly(const scene *s, const solver_assembly *assembly, scene_result *result);

#endif
