// libscene: JSON scenes in, animations and fields out.
// A scene is read whole, every key checked, every mesh read and every selection worked out, before anything runs.
// Everything is SI. docs/scenes.md lists the keys.
#ifndef LIMBER_SCENE_H
#define LIMBER_SCENE_H

#include "libscene/animation.h"
#include "libscene/model.h"
#include "libscene/render.h"
#include "libscene/skeleton.h"
#include "libsolver/solver.h"

// ---- what a scene holds --------------------------------------------------------------------------------------------

// Vertices that a scene names: ascending, without repeats, never empty unless stated.
typedef struct scene_vertices {
    int  count;
    int *items;
} scene_vertices;

typedef enum scene_modes_method {
    SCENE_MODES_KRYLOV,
    SCENE_MODES_LANCZOS,
    SCENE_MODES_SKETCH,
    SCENE_MODES_FILE
} scene_modes_method;
typedef enum scene_forces_kind { SCENE_POLYNOMIAL, SCENE_LINEAR, SCENE_ALL_ELEMENTS, SCENE_CUBATURE } scene_forces_kind;
typedef enum scene_action_kind {
    SCENE_FORCE,
    SCENE_TRACTION,
    SCENE_PRESSURE,
    SCENE_ACCELERATION,
    SCENE_MOVE,
    SCENE_MATERIAL,
    SCENE_STIFFNESS,
    SCENE_FREQUENCY,
    SCENE_STITCH,
    SCENE_UNSTITCH,
    SCENE_CUT
} scene_action_kind;

// A load on a selection, in full.
typedef struct scene_loading {
    scene_action_kind kind; // force, traction, pressure or acceleration
    scene_vertices    on;
    double            vector[3]; // force: N in all; traction: Pa; pressure: Pa in vector[0]; acceleration: m/s^2
} scene_loading;

// How the basis of a reduced part is made.
typedef struct scene_modes {
    scene_modes_method method;
    modes_recipe       recipe; // krylov, lanczos; of a sketch only count, energy and condense
    bool               linear; // was recipe.linear given? Domains and instances choose it by their places otherwise
    char              *file;   // of SCENE_MODES_FILE, relative to where the program runs
    int                load_count;
    scene_loading     *loads; // of a sketch
} scene_modes;

// Where a part can be stitched: pairs of vertices in the same place.
typedef struct scene_seam {
    char *name;
    int   count;
    int  *pairs; // 2 per pair
    bool  given; // as a list of pairs
} scene_seam;

// What the wind does to a part.
typedef struct scene_drag {
    double normal, tangential; // coefficients, see wind.h
    int    samples;
} scene_drag;

typedef struct scene_part {
    char                     *name;
    fem_mesh                  mesh; // in metres, with the scene's materials
    int                       quadrature;
    double                    scale;   // metres per unit of the mesh file
    fem_surface               surface; // embedded in the mesh, as .obj and .glb show it; empty: the skin of the mesh
    scene_vertices            fixed;   // may be empty
    scene_modes               modes;
    scene_forces_kind         forces;
    cubature_training_options training; // SCENE_CUBATURE
    char                     *poses;    // file of training poses, or NULL
    int                       seam_count;
    scene_seam               *seams;
    scene_drag                drag;
    int                       whole; // of a domain of a body that was cut beside others: its part, plus one
    int                       skin_count;
    int                      *skin; // likewise its share of the outer surface, 3 per triangle; NULL: all of the surface
} scene_part;

typedef struct scene_keyframe {
    double time;           // s
    double translation[3]; // m
    double rotation[3];    // rotation vector, rad
} scene_keyframe;

// A rigid motion in time; at rest at time 0.
typedef struct scene_move {
    double          centre[3]; // of the rotation, at rest
    bool            smooth;    // ease in and out of every keyframe
    int             count;
    scene_keyframe *keyframes; // times ascending
} scene_move;

typedef struct scene_action {
    scene_action_kind kind;
    scene_loading     load;             // of a load; load.on also of a move
    double            start, end, ramp; // s; `end` is infinite when the load stays
    scene_move        move;
    fem_material      material; // SCENE_MATERIAL
    int               region;   // SCENE_MATERIAL: of the mesh, -1 = all
    int               domain;   // SCENE_STIFFNESS, SCENE_FREQUENCY: of the tree, -1 = all
    double            factor;   // likewise; load.on: of a forest, the instances, also for stitches
    // SCENE_STITCH, SCENE_UNSTITCH, SCENE_CUT; SCENE_STIFFNESS of a body without domains
    int            seam;         // of the part; -1: none
    double         spring;       // N/m of a stitch; 0: 1000 times the material's
    int            count;        // of stitches at most; 0: all
    scene_vertices within;       // empty: everything
    int            stitch_count; // that are made or taken out
    modes_stitch  *stitches;
} scene_action;

// How a stitched body gets its new basis.
typedef enum scene_stitch_form {
    SCENE_STITCH_LOWRANK, // as modes_stitch_form
    SCENE_STITCH_RITZ,
    SCENE_STITCH_ATTACHMENT,
    SCENE_STITCH_SCRATCH, // everything anew
    SCENE_STITCH_ORIGINAL // the old basis, with the new springs: it locks
} scene_stitch_form;
enum { SCENE_STITCH_FORMS = 5 };
const char *scene_stitch_form_name(scene_stitch_form form); // "lowrank" ... "original"
typedef enum scene_rebuild { SCENE_REBUILD_SAY, SCENE_REBUILD_AUTOMATIC, SCENE_REBUILD_NEVER } scene_rebuild;
typedef struct scene_stitch_options {
    scene_stitch_form  form;
    bool               reuse; // forces
    double             forces_error;
    scene_rebuild      rebuild;
    modes_rebuild_rule rule;
} scene_stitch_options;

typedef struct scene_obstacle {
    solver_obstacle shape; // at time 0
    scene_move      move;  // count 0: it stays
} scene_obstacle;

typedef struct scene_probe {
    char          *name;
    scene_vertices on;
} scene_probe;

// A body cut into a tree of domains.
typedef struct scene_tree {
    domain_tree             domains; // count 0: the body is not cut
    solver_assembly_options assembly;
    solver_domain_options  *own;           // per domain; assembly.domains points to it
    solver_tree_options     options;       // time_step already divides a frame
    double                  damping_ratio; // of the lowest mode; 0: damping is that of `assembly`
    int                     held_count;    // domains that shall have modes, but whose vertices are all their parents':
    int                     held_first;    // rigid ones; the first of them
} scene_tree;

// An instance that is stitched, as a scene of its part alone with the actions that mean it. It borrows all else.
typedef struct scene_stitched {
    int           instance;
    struct scene *alone;
} scene_stitched;

// Several objects, or objects with children: instances of parts.
typedef struct scene_forest {
    int                     count;     // 0: one body
    solver_forest_instance *instances; // with names as paths: "oak/branch.3/leaf.17"
    solver_part            *parts;     // per part of the scene but the last, which is all instances together
    int                     part_count;
    double (*motion)[6];     // per instance: velocity and spin of a free body at time 0
    int            *vertex;  // per instance and one more: its first vertex in the mesh of all
    int            *element; // likewise its first element
    int             stitched_count;
    scene_stitched *stitched;
} scene_forest;

typedef enum scene_method { SCENE_STATIC, SCENE_FULL, SCENE_REDUCED } scene_method;
const char *scene_method_name(scene_method method); // "static", "full", "reduced"

typedef struct scene {
    char                  *path, *name; // of the file; its name without folder and ending
    char                  *cache;       // folder of precomputed classes, by scene_set_cache; NULL: none is used
    char                  *title;       // or NULL
    fem_hash               hash;        // of the text with its overrides, except title and output.frames
    int                    checkpoint;  // a run writes one every so many frames; 0: none. Set by the caller
    bool                   resume;      // a run goes on from its checkpoint. Set by the caller
    double                 memory;      // bytes that classes may be made in, by scene_set_memory; 0: no limit
    int                    part_count;
    scene_part            *parts;
    int                    object; // the part that is simulated; of a forest all its instances
    scene_forest           forest;
    scene_forest           members; // of objects that are stitched together: one body, and these are for selections
    double                 translation[3], rotation[3]; // of a free body at time 0
    double                 velocity[3], spin[3];        // of a body without supports at time 0
    double                 gravity[3];
    solver_contact_options contact;
    bool                   windy;
    solver_wind_options    wind; // when it is
    int                    obstacle_count;
    scene_obstacle        *obstacles;
    int                    action_count;
    scene_action          *actions;
    scene_method           method;
    solver_options         solver;      // static, full; time_step already divides a frame
    solver_reduced_options reduced;     // reduced, likewise
    scene_stitch_options   stitching;   // reduced
    int                    grown_count; // stitches of seams that an action cuts: there from the beginning
    modes_stitch          *grown;
    scene_tree             tree;            // reduced, likewise
    int                    steps_per_frame; // dynamics
    int                    frames;          // dynamics: the first is the state at time 0
    double                 rate;            // frames per second of simulated time
    bool                   write_vtu, write_obj, write_glb;
    scene_glb_options      glb;
    solver_seams           seams;        // of a tree, as it is shown
    bool                   sample_steps; // CSV rows for every step, not only for every frame
    int                    probe_count;
    scene_probe           *probes;
    fem_remarks            remarks; // what the readers of its mesh files passed over
} scene;

// ---- in -------------------------------------------------------------------------------------------------------------

// Reads and checks a scene file. Each override is "dotted.path=value", the value JSON or plain text, and is checked as
// if the file had said it. Wrong input is FEM_BAD_INPUT with "FILE:LINE: path: what is wrong, and what would do".
// The first call makes cJSON, which is global to the process, take its memory from fem_alloc.
fem_status scene_load(scene **loaded, const char *path, int override_count, const char *const *overrides);
void       scene_destroy(scene *s);

// Where reduced parts look for their classes and keep them; NULL: nowhere.
fem_status scene_set_cache(scene *s, const char *folder);

// How much memory the process may take while classes are made, by estimate (libsolver/making.h); 0: no limit. A class
// that does not fit by itself is FEM_BAD_INPUT of the run or the precomputation that wants it, by name.
void scene_set_memory(scene *s, double bytes);

// What a run will need, found out without running it.
typedef struct scene_summary {
    int    vertices, elements, regions, fixed, moved, free_dofs;
    double mass;            // kg
    double volume;          // m^3
    double low[3], high[3]; // m
    int    frames;
    double steps;
    double duration;      // s of simulated time
    double bytes;         // estimate of the memory of a run
    double factor_bytes;  // of that, the Cholesky factor; 0 with PCG
    double seconds_build; // to make and order the matrices
} scene_summary;
fem_status scene_summarize(const scene *s, scene_summary *summary);

// ---- motion and loads at a time -------------------------------------------------------------------------------------

// Share of a load that acts at a time: up over `ramp` from `start`, down over `ramp` from `end`.
double scene_load_factor(const scene_action *action, double time);
// Displacement at a time of a point that is at X at rest and follows a move.
void scene_move_point(const scene_move *move, double time, const double X[3], double displacement[3]);

// ---- run and out ----------------------------------------------------------------------------------------------------

// The cubature of one domain, or of one part of a scene with several objects.
typedef struct scene_rule {
    int                      domain;   // its number, or that of the part
    int                      part;     // of the scene, that says how it was trained
    int                      elements; // of the domain, of which training.elements were chosen
    cubature_training_report training;
} scene_rule;

// A change of a stitched body: what it took and what came of it.
typedef struct scene_change {
    double               time;
    const char          *instance; // of several; NULL: of the one body
    int                  stitches;
    bool                 first;      // the body is as it was at first, and has its first class again
    scene_stitch_form    form;       // that the basis has
    bool                 rebuilt;    // because the rule fired
    modes_stitch_quality quality;    // count 0: not looked at
    double              *frequency2; // (rad/s)^2, quality.count: of the form that was looked at
    bool                 reused;     // forces
    cubature_check       forces;     // of reused ones, on fresh poses, whether good enough or not; 0: not looked at
    solver_rebase_report state;      // how the motion was carried over
    double               seconds_modes, seconds_quality, seconds_derivatives, seconds_condense, seconds_forces;
} scene_change;
void scene_change_destroy(scene_change *change); // leaves it empty

typedef struct scene_result {
    int             frames; // complete on disk
    int             steps;
    double          time; // s, of the last state
    double          max_displacement;
    int             max_vertex; // 0-based
    int             probe_count;
    double         *probes; // 3 per probe: mean displacement, m
    solver_energies energies;
    solver_report   solver; // static, full; reduced: iterations and residual
    // reduced
    int                      domains, cached_domains; // of a tree
    double                   damping_stiffness;       // of a tree damped by ratio: its beta, s; 0: not so
    solver_tree_report       tree;
    int                      modes;
    bool                     cached;                        // the class was read from the cache
    bool                     kept;                          // of a precomputation: all is in the cache now
    double                   seconds_modes, seconds_forces; // to make the class
    solver_room_report       room;                          // with a limit of memory
    cubature_training_report training; // of cubature; elements = 0 without. Of a tree: sums, and the largest errors
    int                      rule_count;
    scene_rule              *rules; // of the domains that have cubature
    solver_step_report       step;
    solver_contact_report    contact;
    double                   contact_force[3];                // on the body, N, of the last step
    double                   seconds_prepare, seconds_output; // parts of `seconds`: before the first step, files
    double                   seconds;
    int                      change_count; // of a stitched body
    scene_change            *changes;
    char                    *notes; // lines of text for the user, or NULL
} scene_result;
void scene_result_destroy(scene_result *result);

// Runs a scene and writes FOLDER/NAME.pvd with its frames NAME_00000.vtu ..., NAME_00000.obj ..., FOLDER/NAME.glb,
// FOLDER/probes.csv and FOLDER/energies.csv. frames = 0 means the scene's own number. However the run ends, the files
// on disk are complete, the .pvd lists exactly the frames of this run, and `result` (may be NULL) describes what was
// done; the caller destroys it. With s->checkpoint the state is kept in FOLDER/NAME.checkpoint every so many frames and
// at the last; with s->resume a run goes on from there, and all files come out as if it had never stopped, bit by bit.
// A checkpoint that is damaged or of another scene is refused, and the results that are there stay.
fem_status scene_run(const scene *s, const char *folder, int frames, const fem_progress *progress,
                     scene_result *result);

// Makes the class of the part that is simulated, as a run would, so that the run finds it in the cache. FEM_BAD_INPUT
// for scenes that are not reduced or have no cache. The result has modes, cached, kept, seconds and notes.
fem_status scene_precompute(const scene *s, const fem_progress *progress, scene_result *result);

// The experiment of `limber stitch`: after each change of a stitched body the linear modes in each form beside those
// from scratch, and a run of the scene in each form.
typedef struct scene_round {
    double  time;
    int     stitches, modes;
    bool    first;                           // the body is as it was at first: nothing to compare
    double  seconds[SCENE_STITCH_FORMS];     // of processor time: linear modes, by form
    double  worst_error[SCENE_STITCH_FORMS]; // of the first 20 frequencies
    double  least_share[SCENE_STITCH_FORMS]; // of the first 20 true modes
    double *frequency;                       // modes per form, Hz
    double *share;                           // modes per form: of each true mode in the basis
} scene_round;
typedef struct scene_experiment {
    double       seconds_before; // of processor time: what is held of the body without stitches
    int          round_count;
    scene_round *rounds;
    struct {
        bool         done;         // false: not run, or failed
        char         failure[240]; // how
        scene_result result;
        double       difference; // of the probes from those from scratch, root mean square over that of the latter; NaN
    } runs[SCENE_STITCH_FORMS];  // by form
} scene_experiment;
// Writes FOLDER/frequencies.csv, coverage.csv, coverage_N.svg for each change, and with `runs` the results of each run
// in FOLDER/FORM. FEM_BAD_INPUT for a scene that stitches nothing.
fem_status scene_stitch_experiment(scene *s, const char *folder, bool runs, const fem_progress *progress,
                                   scene_experiment *experiment);
void       scene_experiment_destroy(scene_experiment *experiment); // leaves it empty

// Small vibrations of a scene's body about rest: of the full mesh, of its modes, or of its coupled domains with their
// springs. The arrays have `count` entries; the caller destroys.
typedef struct scene_frequencies {
    int     vertices, elements, free_dofs, dofs, domains; // dofs: of the model; domains 0: not cut
    int     count;
    double  mass;
    double *eigenvalues; // (rad/s)^2, ascending, rigid motions left out
    double *residuals;   // |K x - w^2 M x| / |K x| in the full mesh (of domains: each vertex with its owner)
    double  seconds_prepare, seconds_solve;
    char   *notes;
} scene_frequencies;
fem_status scene_find_frequencies(const scene *s, int count, const fem_progress *progress, scene_frequencies *found);
void       scene_frequencies_destroy(scene_frequencies *found); // leaves it empty

// What to say when a body was cut into less than half of the domains that were asked for; false: nothing.
enum { SCENE_CUT_TEXT = 300 };
bool scene_cut_text(const scene *s, char text[SCENE_CUT_TEXT]);
// What to say of domains that own no vertex and are rigid though nobody asked for it; false: nothing.
bool scene_held_text(const scene *s, char text[SCENE_CUT_TEXT]);

// A ParaView collection: `count` files (names relative to the .pvd) and their times.
fem_status scene_pvd_write(const char *path, int count, const double *times, const char *const *files);

// ---- the description of the format, from the tables that the loader reads by ----------------------------------

// JSON Schema (2020-12) of scene files. Caller frees.
fem_status scene_schema(char **text);
// The page with each of its key tables, between "<!-- keys: NAME -->" and "<!-- end -->", written anew. Caller frees.
fem_status scene_page(char **text, const char *page);

#endif
