// Inside libscene only: strict JSON with line numbers, the tables of keys, and the reader that goes by them.
#ifndef LIMBER_SCENE_INTERNAL_H
#define LIMBER_SCENE_INTERNAL_H

#include "libscene/scene.h"

#include <cjson/cJSON.h>

// Of a scene of several objects: instances, their elements and vertices together, characters of an instance's name.
enum { SCENE_INSTANCES_MOST = 1000000, SCENE_ELEMENTS_MOST = 100000000, SCENE_NAME_MOST = 200 };

// ---- JSON (json.c) ----------------------------------------------------------------------------------------------

enum { JSON_DEPTH = 64 }; // of nested lists and objects

// Parses strict JSON. The line of every value (for a member of an object: of its key) is kept in its `valueint`, which
// nothing else here uses. `label` stands in front of messages: the file's name.
fem_status json_parse(cJSON **root, const char *label, const char *text, size_t size);
// Calls visit(context, node) for the node and everything below it, in the order of the text.
void        json_visit(cJSON *root, void (*visit)(void *context, cJSON *node), void *context);
const char *json_kind(const cJSON *node); // "a number", "a list", ...

// ---- tables of keys (keys.c) --------------------------------------------------------------------------------------

typedef enum scene_key_type {
    KEY_NUMBER,
    KEY_INTEGER,
    KEY_FLAG,
    KEY_TEXT,
    KEY_CHOICE,     // one of `choices`
    KEY_SECTION,    // an object with the keys of `table`
    KEY_MAP,        // an object: name -> an object with the keys of `table`
    KEY_LIST,       // a list of objects with the keys of `table`
    KEY_MESH,       // a file name, or an object with the keys of `table`
    KEY_SELECTION,  // a set name, an object with the keys of `table`, or a list of those
    KEY_SELECTIONS, // an object: name -> selection
    KEY_ASSIGNMENT, // a name, or an object: region -> name
} scene_key_type;

// How many numbers, integers or choices. What is not of fixed size is stored as the checked JSON node.
typedef enum scene_shape {
    SHAPE_ONE,
    SHAPE_VECTOR, // three
    SHAPE_LIST,   // any number, at least one
    SHAPE_ANY,    // one, or a list
    SHAPE_PAIR,   // two vectors
    SHAPE_POINTS, // a list of vectors
    SHAPE_PLACES, // a list of rows of seven: translation, rotation, scale
} scene_shape;

typedef struct scene_table scene_table;

typedef struct scene_key {
    const char        *name;
    scene_key_type     type;
    scene_shape        shape;
    bool               required;
    bool               alternative;         // exactly one of the table's alternatives must be given
    unsigned           only;                // variants that have this key, as bits; 0 = all
    bool               low_open, high_open; // the limit itself is not allowed
    double             low, high;           // both 0: every finite number
    double             fallback[3];         // what an absent key means; NaN stands for `otherwise`
    const char        *otherwise;           // in words, where no number says it
    const char        *unit;
    const char        *choices;     // separated by |
    int                least, most; // items of a list or a map; most 0: any number
    const scene_table *table;
    size_t             offset; // of the value in the struct that the table fills
    const char        *about;
} scene_key;

// Which variant of a table is meant follows from its alternatives, or from its first key ("type", "method").
struct scene_table {
    const char      *name, *about;
    const scene_key *keys;
    int              count;
    bool             typed;            // the first key chooses the variant
    bool             has_alternatives; // then the one that is given is the variant,
    size_t           variant;          // and the int at this offset gets its index among them
};

extern const scene_table scene_top_table, scene_material_table, scene_part_table, scene_object_table,
    scene_action_table;
extern const scene_table scene_keyframe_table, scene_mesh_table, scene_piece_table, scene_selection_table;
extern const scene_table scene_modes_table, scene_sketch_table, scene_obstacle_table, scene_domain_table,
    scene_seam_table, scene_group_table;
enum { SCENE_TABLES_MOST = 64 };
// All tables once, in the order in which they are first mentioned.
int scene_all_tables(const scene_table *tables[SCENE_TABLES_MOST]);

// ---- what the tables fill -------------------------------------------------------------------------------------

typedef struct raw_material {
    int          kind;
    double       density, young, poisson, young3[3], poisson3[3], shear3[3];
    const cJSON *axes;
    double       mu01, mu10, v1, mu, chain, bulk, inversion_threshold;
} raw_material;

typedef struct raw_box {
    int    element;
    double low[3], high[3];
    int    cells[3];
} raw_box;

typedef struct raw_tube {
    int          element;
    const cJSON *points, *radius;
    int          rings;
    double       segment;
} raw_tube;

typedef struct raw_leaf {
    int    element;
    double length, width, thickness, petiole_length, petiole_width;
    int    cells, layers;
} raw_leaf;

typedef struct raw_sphere {
    int    element;
    double centre[3], radius;
    int    cells;
} raw_sphere;

typedef struct raw_capsule {
    const cJSON *ends, *radius;
} raw_capsule;

typedef struct raw_ball {
    double centre[3], radius;
} raw_ball;

enum { PIECE_CAPSULE, PIECE_BOX, PIECE_BALL };
typedef struct raw_piece {
    int          variant;
    const char  *name;
    raw_capsule  capsule;
    const cJSON *box;
    raw_ball     ball;
} raw_piece;

typedef struct raw_pieces {
    int          element;
    double       voxel;
    int          shell;
    const cJSON *shapes;
} raw_pieces;

enum { MESH_BOX, MESH_TUBE, MESH_LEAF, MESH_SPHERE, MESH_PIECES };
typedef struct raw_mesh {
    int        variant;
    raw_box    box;
    raw_tube   tube;
    raw_leaf   leaf;
    raw_sphere sphere;
    raw_pieces pieces;
} raw_mesh;

typedef struct raw_plane {
    double point[3], normal[3], tolerance;
} raw_plane;

enum {
    SELECT_VERTICES,
    SELECT_FILE,
    SELECT_REGION,
    SELECT_BOX,
    SELECT_PLANE,
    SELECT_HALFSPACE,
    SELECT_BALL,
    SELECT_INSTANCE,
    SELECT_NEAREST
};
typedef struct raw_selection {
    int          variant;
    const cJSON *vertices;
    const char  *file, *region, *instance, *set;
    const cJSON *box;
    raw_plane    plane, halfspace;
    raw_ball     ball;
    double       nearest[3];
} raw_selection;

typedef struct raw_modes {
    int          method, linear, derivatives, count, condense, seeds, orthogonalise;
    double       energy;
    const char  *file;
    const cJSON *sketch, *orders;
} raw_modes;

typedef struct raw_sketch { // variant: scene_action_kind, of a load
    int          variant;
    double       force[3], traction[3], pressure, acceleration[3];
    const cJSON *on;
} raw_sketch;

enum { SEAM_PLANE, SEAM_BETWEEN, SEAM_FACES, SEAM_MATCH, SEAM_PAIRS };
typedef struct raw_seam {
    int variant;
    struct {
        double       point[3], normal[3];
        const cJSON *within;
    } plane;
    struct {
        const char *a, *b;
    } between;
    struct {
        const cJSON *a, *b;
        double       tolerance;
    } match;
    const cJSON *faces, *pairs;
} raw_seam;

typedef struct raw_part {
    const cJSON *mesh, *material, *fixed, *seams;
    const char  *surface;
    int          quadrature;
    double       scale;
    raw_modes    modes;
    struct {
        int         type, method, elements, poses, sampling, held_out, seed;
        double      error, displacement;
        const char *file;
    } forces;
    struct {
        double normal, tangential;
        int    samples;
    } drag;
} raw_part;

typedef struct raw_damping {
    double mass, stiffness;
} raw_damping;

typedef struct raw_domain { // not given: modes -1, forces 0, numbers NaN
    int         modes, forces, derivatives;
    double      stiffness, frequency;
    raw_damping damping;
} raw_domain;

typedef struct raw_decompose {
    int          method, count, loops, feet, modes, total;
    bool         wrenches;
    const cJSON *domains;
    struct {
        double stiffness, damping;
    } springs;
} raw_decompose;

typedef struct raw_repeat {
    int    count; // 0: not given
    double translation[3], rotation[3], scale;
} raw_repeat;

typedef struct raw_scatter {
    int         count, seed; // 0: not given
    const char *region;
    double      low[3], high[3], smallest, largest, tilt, depth;
} raw_scatter;

typedef struct raw_components {
    double       tolerance, reach;
    const cJSON *modes;
} raw_components;

enum { OBJECT_PART, OBJECT_GROUP };
typedef struct raw_object {
    int            variant;
    const char    *part, *group, *name;
    double         translation[3], rotation[3], scale, velocity[3], spin[3];
    const cJSON   *places, *children;
    raw_repeat     repeat;
    raw_scatter    scatter;
    double         stiffness, frequency, reach;
    raw_damping    damping; // negative: not given
    raw_decompose  decompose;
    raw_components components;
} raw_object;

typedef struct raw_group {
    const cJSON *objects;
} raw_group;

typedef struct raw_box_obstacle {
    double centre[3], size[3], rotation[3];
} raw_box_obstacle;

typedef struct raw_obstacle {
    int              variant; // solver_obstacle_kind
    raw_plane        plane;
    raw_box_obstacle box;
    raw_ball         sphere;
    const cJSON     *keyframes;
    int              interpolation;
} raw_obstacle;

typedef struct raw_environment {
    double       gravity[3];
    const cJSON *obstacles;
    struct {
        double stiffness, damping, friction, slip_velocity;
    } contact;
    struct {
        double speed, direction[3], up[3], ground, reference_height, roughness, intensity, length;
        double gust, gust_period, gust_duration, density;
        int    seed;
    } wind;
} raw_environment;

typedef struct raw_move {
    const cJSON *keyframes;
    double       centre[3];
    int          interpolation;
} raw_move;

typedef struct raw_action { // variant: scene_action_kind
    int          variant;
    double       force[3], traction[3], pressure, acceleration[3];
    raw_move     move;
    const char  *material, *region, *domain;
    double       stiffness, frequency;
    const char  *stitch, *unstitch, *cut;
    double       spring;
    int          count;
    const cJSON *within;
    const cJSON *on;
    double       start, end, ramp;
} raw_action;

typedef struct raw_solver {
    int    method;
    double step;
    int    integrator, subtree, passes;
    double theta;
    struct {
        double beta, gamma;
    } newmark;
    struct {
        double mass, stiffness, ratio;
        bool   local;
    } damping;
    int mass;
    struct {
        int    iterations;
        double tolerance;
        int    line_search;
    } newton;
    int load_steps, load_halvings;
    int linear, solve;
    struct {
        double tolerance;
        int    iterations;
    } pcg;
    struct {
        int    form, forces, when, modes;
        double forces_error, error, share;
    } stitching;
} raw_solver;

typedef struct raw_output {
    int      frames;
    double   rate;
    unsigned formats; // bits
    struct {
        int  up, units;
        bool skin;
    } glb;
    int          interfaces, sample;
    const cJSON *probes;
} raw_output;

typedef struct raw_scene {
    const char     *schema, *title;
    int             version;
    const cJSON    *materials, *parts, *objects, *groups, *actions, *seams;
    raw_environment environment;
    raw_solver      solver;
    raw_output      output;
} raw_scene;

// ---- the reader (reader.c) -----------------------------------------------------------------------------------------

typedef struct scene_reader {
    const char        *file; // as the caller named it
    const char *const *overrides;
    char               path[512]; // of the value that is being read: "parts.leaf.mesh"
    fem_remarks       *remarks;   // of the readers of meshes
    const scene       *scene;     // what has been read so far
} scene_reader;

// Appends to the path and returns its former length, for reader_leave.
size_t reader_enter(scene_reader *reader, const char *key);
size_t reader_enter_index(scene_reader *reader, int index);
void   reader_leave(scene_reader *reader, size_t length);

// FEM_BAD_INPUT with "FILE:LINE: path: message".
fem_status reader_fail(const scene_reader *reader, const cJSON *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Puts "FILE:LINE: path: " before a library's message. A file that cannot be read is bad input of the scene.
fem_status reader_prefix(const scene_reader *reader, const cJSON *node, fem_status status);

// Reads an object by its table into `out`; node may be NULL where no key is required.
fem_status reader_table(scene_reader *reader, const cJSON *node, const scene_table *table, void *out);
// Names of parts, materials and probes: letters, digits, _ and -.
fem_status reader_check_name(const scene_reader *reader, const cJSON *node, const char *name);
// The vectors of a checked SHAPE_PAIR or SHAPE_POINTS node.
void reader_vector(const cJSON *node, double out[3]);

// Range in words: "> 0 and <= 0.5".
void key_range_text(const scene_key *key, char *text, size_t size);
// The i-th of the key's choices; false when there are fewer.
bool key_choice(const scene_key *key, int i, char *text, size_t size);
int  key_variant_count(const scene_table *table);

// "Did you mean": offer every name that would have done, then take the text, which starts with a blank.
typedef struct scene_suggestion {
    const char *word, *best;
    int         distance, offered;
    char        known[160], text[256];
} scene_suggestion;
void        suggestion_start(scene_suggestion *s, const char *word);
void        suggestion_offer(scene_suggestion *s, const char *candidate);
const char *suggestion_text(scene_suggestion *s);

// ---- parts of the loader --------------------------------------------------------------------------------------

// A path relative to the scene file's folder. Caller frees.
fem_status scene_relative_path(char **path, const scene_reader *reader, const char *relative);
fem_status scene_read_mesh(scene_reader *reader, const cJSON *node, fem_mesh *mesh);
fem_status scene_select(scene_reader *reader, const cJSON *node, const fem_mesh *mesh, scene_vertices *vertices);
fem_status scene_read_material(scene_reader *reader, const cJSON *node, fem_material *material);
// Gives the mesh its materials: `assignment` is a name or an object region -> name, NULL for the mesh file's own.
fem_status scene_assign_materials(scene_reader *reader, const cJSON *part, const cJSON *assignment, int material_count,
                                  const fem_material *materials, bool mesh_from_file, fem_mesh *mesh);
fem_status scene_read_modes(scene_reader *reader, const cJSON *node, const raw_modes *raw, const scene_part *part,
                            scene_modes *modes);
void       scene_modes_destroy(scene_modes *modes);
fem_status scene_read_action(scene_reader *reader, const cJSON *node, const scene *s, int material_count,
                             const fem_material *materials, scene_action *action);
// A load in full; the path stands at the object that holds its keys.
fem_status scene_read_load(scene_reader *reader, const cJSON *on, scene_action_kind kind, const double *vector,
                           const scene_part *part, scene_loading *load); // vector: 3, of a pressure 1
// Cuts the object's part into domains and reads what they have of their own; the path stands at the object.
solver_forces_kind scene_forces_in_tree(scene_forces_kind kind);
fem_status         scene_read_decompose(scene_reader *reader, const cJSON *object, const raw_decompose *raw, scene *s);
// Expands objects with children, groups and copies into the instances of a forest, and makes of all of them the one
// part that is simulated. Is this scene of that kind?
bool scene_is_forest(const raw_scene *raw);
void scene_make_placement(solver_placement *at, const double translation[3], const double rotation[3], double scale);
// The copies of an object, inside its own placement; parent: the instance that they hang on, or -1. Caller frees.
fem_status scene_make_copies(scene_reader *reader, const scene *s, const cJSON *node, const raw_object *raw, int parent,
                             int *count, solver_placement **rows);
// Adds the last part: all instances as one mesh.
fem_status scene_compose_forest(scene_reader *reader, const cJSON *node, const solver_forest *plan, scene *s);
// The pieces of an object's part, of which each class becomes a part of the scene; the path stands at the object.
fem_status scene_read_components(scene_reader *reader, const cJSON *object, const raw_components *raw, int part,
                                 scene *s, domain_crowd *crowd);
// Room for more parts behind those of the scene, and for the one of all instances.
fem_status scene_grow_parts(scene *s, int more);
// What a part that is made of a piece of another has of it: all but its name, its mesh and what holds it.
scene_part scene_part_like(const scene_part *part);
// The most modes that a domain of the part can have.
int scene_domain_most_modes(const scene_part *part, const domain_part *piece, int domain);
// An object of a forest that is cut: its domains are parts from `first` on. The path stands at the object.
typedef struct scene_cut {
    const cJSON           *node;
    int                    part, first;
    domain_tree            tree;
    solver_domain_options *own; // per domain; damping that is not given is negative
} scene_cut;
fem_status scene_read_cut(scene_reader *reader, const cJSON *object, const raw_decompose *raw, int part, scene *s,
                          scene_cut *cut);
void       scene_cut_destroy(scene_cut *cut);
// Hangs those of the scene's instances from `first` on that were placed on the whole, as children of its first domain,
// `root`, on the domains where they are; their reach grows where their roots lie over a cut.
fem_status scene_cut_hang(scene *s, const scene_cut *cut, int root, int first);
// Of a scene with seams between its objects: they are one body, and no forest any more.
fem_status          scene_join_forest(scene_reader *reader, const raw_scene *raw, scene *s);
const scene_forest *scene_members(const scene *s); // of such a body, or of a forest
fem_status          scene_read_forest(scene_reader *reader, const raw_scene *raw, scene *s);
void                scene_forest_destroy(scene_forest *forest);
// Does the name mean this instance: its path, or the last names of it, with or without the number of the copy?
bool scene_instance_is(const scene_forest *forest, int instance, const char *name);
// FEM_BAD_INPUT when no instance has that name.
fem_status scene_check_instance(const scene_reader *reader, const cJSON *node, const scene *s, const char *name);
// The part of a name, for messages at the key "part" of an object.
fem_status scene_find_part(scene_reader *reader, const cJSON *object, const char *name, const scene *s, int *part);
// The domain that a name or number means.
fem_status scene_find_domain(const scene_reader *reader, const cJSON *node, const char *name, const domain_tree *tree,
                             int *domain);
// Opens the cuts of a part's seams and finds their pairs; the path stands at the part, whose mesh has its materials and
// whose `fixed` is not known yet.
fem_status scene_read_seams(scene_reader *reader, const cJSON *node, scene_part *part);
// Those seams that two surfaces make, when `fixed` is known.
fem_status scene_match_seams(scene_reader *reader, const cJSON *node, scene_part *part);
void       scene_seams_destroy(scene_part *part);
// stitch, unstitch, cut, and stiffness of a body that is not cut into domains
fem_status scene_read_stitch(scene_reader *reader, const cJSON *node, const raw_action *raw, const scene *s,
                             scene_action *action);
// Goes through the changes in the order of their times: what each does to the body as it is then, and whether it can.
fem_status scene_plan_stitches(scene_reader *reader, const cJSON *actions, scene *s);
// The same of one body, the part that the scene simulates. `number`: of its actions in the file; NULL: as they come.
fem_status scene_plan_body(scene_reader *reader, const cJSON *actions, const int *number, scene *s);
fem_status scene_check_stitched_modes(const scene_reader *reader, const cJSON *node, const scene_part *part);
// Of several objects (load_stitch_instances.c): the instances that "INSTANCE/SEAM" or "SEAM" means, into load.on; of
// them those that the selection `within` touches; and what is done to each.
fem_status scene_find_stitched(scene_reader *reader, const cJSON *node, const char *name, const scene *s,
                               scene_action *action);
fem_status scene_narrow_stitched(const scene_reader *reader, const cJSON *node, const scene *s, scene_action *action);
fem_status scene_plan_instances(scene_reader *reader, const cJSON *actions, scene *s);
void       scene_stitched_destroy(scene_forest *forest);
// The wind of an environment, when it has one; the path stands at the environment.
fem_status scene_read_wind(scene_reader *reader, const cJSON *environment, const raw_environment *raw, scene *s);
fem_status scene_read_obstacle(scene_reader *reader, const cJSON *node, scene_obstacle *obstacle);
// Reads the keyframes of a move into it; `dynamic` scenes start at rest.
fem_status scene_read_keyframes(scene_reader *reader, const cJSON *node, bool dynamic, scene_move *move);
// The material that a node names, or the region of a name; FEM_BAD_INPUT with those that there are.
fem_status scene_find_material(const scene_reader *reader, const cJSON *node, int count, const fem_material *materials,
                               int *index);
fem_status scene_find_region(const scene_reader *reader, const cJSON *node, const char *name, const fem_mesh *mesh,
                             int *region);

// ---- wind (wind.c) --------------------------------------------------------------------------------------------------

// The wind of a scene on a tree, in batches of a class each.
typedef struct scene_wind scene_wind;
void                      scene_wind_destroy(scene_wind *wind);
// What the wind takes hold of: class k has the surface of `mesh`, or where `triangles` is given these, and r modes U.
typedef struct scene_sail {
    const fem_mesh    *mesh;
    const int         *triangles; // 3 each, vertices of the mesh; NULL: the surface of the mesh
    int                triangle_count;
    const modes_basis *basis;
    scene_drag         drag;
} scene_sail;
fem_status scene_wind_create(scene_wind **wind, const scene *s, int class_count, const scene_sail *sails, int count);
// A step of the tree with the loads of the wind, instead of those that it has, or besides them.
fem_status scene_wind_step(scene_wind *wind, solver_tree *tree, bool besides);

// A surface of triangles between vertices of a mesh, with those vertices only, in the order of the mesh; *vertices (may
// be NULL, caller frees): their numbers there.
fem_status scene_surface_of(fem_surface *surface, int **vertices, const fem_mesh *mesh, int count,
                            const int *triangles);

// ---- the run's pieces (forces.c) ------------------------------------------------------------------------------

// 3 per vertex: 1 where the part's support or a move prescribes the motion.
void scene_fixed_dofs(const scene *s, unsigned char *fixed);
// Where a motion is at a time: between the keyframes around it, at rest at time 0, at the last one for ever after.
scene_keyframe scene_move_at(const scene_move *move, double time);
// Where a root is that a move drives: at rest at `origin` with the axes `turned`; differences over the step h.
void scene_drive_at(const scene_move *move, const double origin[3], const double turned[9], double h, double time,
                    solver_frame_motion *motion);
// Adds a load in full, 3 per vertex.
fem_status scene_load_force(const scene_loading *load, const fem_body *body, double *force);
bool       scene_is_load(scene_action_kind kind); // force, traction, pressure, acceleration
// An obstacle at the beginning of a step, with its mean velocity over it.
solver_obstacle scene_obstacle_at(const scene_obstacle *obstacle, double from, double to);
// Adds what the obstacles exert on the body.
void scene_contact_force(const solver_contact *contact, int obstacles, double force[3]);
// Full force of each load, and gravity.
typedef struct scene_forces {
    int     n;       // 3 x vertices
    double *gravity; // n
    double *loads;   // n per action; moves have zeros
    double *total;   // n
    double *motion;  // n: prescribed displacements
} scene_forces;
fem_status scene_forces_create(scene_forces *forces, const scene *s, const fem_body *body);
void       scene_forces_destroy(scene_forces *forces);
// Fills total and motion for a time; statics take INFINITY, where every load acts in full.
void scene_forces_at(scene_forces *forces, const scene *s, double time);

void scene_bounding_box(const fem_mesh *mesh, double low[3], double high[3]);

// ---- plants (plant_mend.c) ----------------------------------------------------------------------------------------

// A copy without stubs and hairs, and with so many leaves at most (-1: all).
fem_status scene_plant_mend(const scene_skeleton *s, int leaves, scene_skeleton *out);

#endif
