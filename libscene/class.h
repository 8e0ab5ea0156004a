// A class: what is computed once for a part, kept on disk, and used by all its instances.
#ifndef LIMBER_SCENE_CLASS_H
#define LIMBER_SCENE_CLASS_H

#include "libscene/scene.h"

typedef struct scene_class {
    modes_basis              basis;
    cubature_polynomial      polynomial; // SCENE_POLYNOMIAL
    double                  *K0;         // SCENE_LINEAR: r x r
    cubature_linear          linear;     // of K0
    cubature_full           *full;       // SCENE_ALL_ELEMENTS
    cubature_rule            rule;       // SCENE_CUBATURE
    cubature_training_report training;   // likewise
    double                   lost;       // part of given training poses that the basis cannot show
    cubature_forces          forces;     // of whichever of them it is, and of springs where there are
    int                      part_count; // SCENE_POLYNOMIAL, of a stitched body in several groups of pieces
    cubature_polynomial     *parts;      // of each
    cubature_pieces         *pieces;     // all of them
    cubature_stitched       *springs;    // of a stitched body, else NULL
    fem_mesh                 mesh;       // with body: of a stitched body whose domains are stiffer than the part's
    fem_body                *body;       // else NULL
    bool                    *carried;    // per column: carries a motion that the modes do not have; NULL: none does
    double                  *M;          // r x r; NULL = identity
    bool                     cached;     // read from the cache
    bool                     kept;       // in the cache now
    double                   seconds_modes, seconds_forces;
    solver_room_report       room; // with a limit of memory (the recipe's max_bytes)
} scene_class;

// `body` is the part's and must outlive the class. `cache` is a folder, which is made, or NULL. What the user should
// know of a file there that was not what it should be is added to *notes, lines of text that the caller frees.
fem_status scene_class_create(scene_class **class, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                              const char *cache, const fem_progress *progress, char **notes);
void       scene_class_destroy(scene_class *class);
// Makes what a class needs besides its basis: the reduced mass, and the forces unless they are there already.
fem_status scene_class_complete(scene_class *class, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                                bool forces, const fem_progress *progress);

// ---- cache files, of whole parts and of domains -------------------------------------------------------------------

// What a cache file holds.
typedef struct scene_stored {
    modes_basis              *basis;
    cubature_polynomial      *polynomial;  // empty: there is none
    cubature_rule            *rule;        // NULL or empty: there is none
    cubature_training_report *training;    // of the rule
    int                      *whole_count; // NULL: not a domain's; of solver_class
    double                  **whole;       // allocated by the reader
} scene_stored;

// FOLDER/NAME-HASH.class; the folder and those above it are made. Caller frees.
fem_status scene_cache_path(char **path, const char *folder, const char *name, fem_hash key);
fem_status scene_class_write(const scene_stored *stored, fem_hash key, const char *path);
// The polynomial gets the materials of the mesh; a rule that was trained with these options (NULL: there is none) gets
// its elements and weights. FEM_IO when there is no such file, FEM_BAD_INPUT when it is not the class of this mesh.
fem_status scene_class_read(const scene_stored *stored, const fem_mesh *mesh, bool has_polynomial,
                            const cubature_training_options *training, fem_hash key, const char *path);
fem_status scene_add_note(char **notes, const char *text); // a line of text

// ---- cubature (class_cubature.c) -----------------------------------------------------------------------------------

// Trains the rule of a class whose basis is made. An interrupted training goes on from `checkpoint` (may be NULL).
fem_status scene_cubature_train(scene_class *class, const scene_part *part, const fem_body *body, const fem_sparse *K,
                                const fem_sparse *M, const char *checkpoint, fem_hash key,
                                const fem_progress *progress);
// The poses of part->poses: displacements, 3 vertices x count, allocated; FEM_BAD_INPUT says what is wrong with the
// file. And as coordinates, r x count.
fem_status scene_poses_read(const scene_part *part, int *count, double **u);
fem_status scene_poses_project(const modes_basis *basis, const fem_sparse *M, int count, const double *u, double *q,
                               double *lost);
// The arrays of a rule for the store, at most SCENE_CUBATURE_ITEMS; and back, elements and weights only.
enum { SCENE_CUBATURE_ITEMS = 4 };
int        scene_cubature_items(const scene_stored *stored, int size[3], double numbers[6], fem_store_item *items);
fem_status scene_cubature_read(const scene_stored *stored, const fem_mesh *mesh,
                               const cubature_training_options *options, const fem_store *store, const char *path);
// Completes a rule that was read.
fem_status scene_cubature_finish(scene_class *class, const fem_body *body);
// What the user should know of a training, as one line, or NULL. Caller frees.
fem_status scene_cubature_note(const scene_class *class, const scene_part *part, char **text);
// The same for the rules of domains, or of the parts of a scene with several objects (NULL: none), and into a result.
fem_status scene_note_rules(const scene *s, int count, solver_class *const *classes, char **notes);
void       scene_report_rules(const scene *s, int count, solver_class *const *classes, scene_result *result);
// A .vtu of the chosen elements with their weights.
fem_status scene_cubature_write(const cubature_rule *rule, const fem_mesh *mesh, const char *path);

#endif
