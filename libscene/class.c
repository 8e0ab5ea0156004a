// Makes the class of a part: its basis and its reduced forces, from the cache where they are there.
// The name of a cache file is the hash of everything that determines its content; the content is checked all the same.
#include "libscene/class.h"
#include "libscene/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// To be raised whenever the same input gives another class: part of every key.
enum { CLASS_VERSION = 4 };

// ---- key -----------------------------------------------------------------------------------------------------------

static fem_hash hash_int(fem_hash hash, int value) { return fem_hash_add(hash, &value, sizeof value); }
static fem_hash hash_double(fem_hash hash, double value) { return fem_hash_add(hash, &value, sizeof value); }

static fem_hash hash_recipe(fem_hash hash, const modes_recipe *recipe) {
    hash = hash_int(hash, (int)recipe->method);
    hash = hash_int(hash, recipe->linear);
    hash = hash_int(hash, recipe->derivatives);
    hash = fem_hash_add(hash, recipe->modes, sizeof recipe->modes);
    hash = hash_int(hash, recipe->count);
    hash = hash_int(hash, (int)recipe->kind);
    hash = hash_int(hash, (int)recipe->condense);
    hash = hash_int(hash, (int)recipe->metric);
    hash = hash_int(hash, (int)recipe->scaling);
    hash = hash_double(hash, recipe->energy);
    hash = hash_int(hash, (int)recipe->krylov.seeds);
    return hash_int(hash, (int)recipe->krylov.orthogonalise.method);
}

static fem_hash class_key(const scene_part *part, fem_mass_kind mass) {
    const scene_modes *modes = &part->modes;
    fem_hash           hash = hash_int(fem_mesh_hash(&part->mesh), CLASS_VERSION);
    hash = hash_int(hash, part->quadrature);
    hash = hash_int(hash, (int)mass);
    hash = hash_int(hash, (int)part->forces);
    if (part->forces == SCENE_CUBATURE) hash = cubature_training_hash(hash, &part->training);
    hash = fem_hash_add(hash, part->fixed.items, (size_t)part->fixed.count * sizeof *part->fixed.items);
    hash = hash_int(hash, (int)modes->method);
    hash = hash_recipe(hash, &modes->recipe);
    for (int i = 0; i < modes->load_count; i++) {
        const scene_loading *load = &modes->loads[i];
        hash = hash_int(hash, (int)load->kind);
        hash = fem_hash_add(hash, load->vector, sizeof load->vector);
        hash = fem_hash_add(hash, load->on.items, (size_t)load->on.count * sizeof *load->on.items);
    }
    return hash;
}

// ---- the file ------------------------------------------------------------------------------------------------------

// What a writer that was killed has left beside its file: NAME.class.PROCESS-NUMBER.part. A file that is being written
// now is younger than an hour.
static void remove_leftovers(const char *path) {
    char        folder[4096];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    DIR *entries = opendir(folder);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct stat about;
        const char *ending = strstr(entry->d_name, ".class.");
        size_t      length = strlen(entry->d_name);
        if (!ending || length < 5 || strcmp(entry->d_name + length - 5, ".part") != 0) continue;
        if (fstatat(dirfd(entries), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode) &&
            difftime(time(NULL), about.st_mtime) > 3600)
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    closedir(entries);
}

fem_status scene_class_write(const scene_stored *stored, fem_hash key, const char *path) {
    const modes_basis         *basis = stored->basis;
    const cubature_polynomial *p = stored->polynomial;
    const int                  size[] = {basis->n, basis->r, p->group_count, p->set_count};
    size_t                     r = (size_t)basis->r, modes = (size_t)p->r;
    fem_store_item             items[7 + SCENE_CUBATURE_ITEMS] = {
                    {"size", FEM_STORE_INT, 4, size},
                    {"omega2", FEM_STORE_DOUBLE, r, basis->omega2},
                    {"U", FEM_STORE_DOUBLE, (size_t)basis->n * r, basis->U},
                    {"sets", FEM_STORE_DOUBLE, (size_t)p->set_count * p->count, p->sets},
                    {"mass", FEM_STORE_DOUBLE, (size_t)p->group_count * modes * modes, p->mass},
                    {"modes", FEM_STORE_INT, 1, &p->r}, // of the polynomial; the basis may have more
    };
    int    rule_size[3];
    double numbers[6];
    int    more =
        stored->rule && stored->rule->count > 0 ? scene_cubature_items(stored, rule_size, numbers, items + 6) : 0;
    if (stored->whole_count && *stored->whole_count > 0)
        items[6 + more++] =
            (fem_store_item){"whole", FEM_STORE_DOUBLE, 2 * (size_t)*stored->whole_count, *stored->whole};
    remove_leftovers(path);
    return fem_store_write(path, "class", CLASS_VERSION, key, 6 + more, items);
}

// The groups of a mesh: those of its materials that elements have, in their order.
static int find_groups(const fem_mesh *mesh, int *materials) {
    int count = 0;
    for (int m = 0; m < mesh->material_count; m++) {
        bool used = false;
        for (int e = 0; e < mesh->element_count && !used; e++) used = mesh->regions[mesh->region[e]].material == m;
        if (used) materials[count++] = m;
    }
    return count;
}

static fem_status fill_class(const scene_stored *stored, const fem_mesh *mesh, bool has_polynomial,
                             const fem_store *store, const char *path) {
    fem_status           status = FEM_OK;
    modes_basis         *basis = stored->basis;
    cubature_polynomial *polynomial = stored->polynomial;
    const int           *size = fem_store_find(store, "size", FEM_STORE_INT, 4);
    int                  n = 3 * mesh->vertex_count;
    bool                 sane = size && size[0] == n && size[1] >= 1 && size[1] <= n && size[2] >= 0 && size[3] >= 0;
    const int           *modes = fem_store_find(store, "modes", FEM_STORE_INT, 1);
    sane = sane && modes && modes[0] >= 0 && modes[0] <= size[1];
    size_t        r = sane ? (size_t)size[1] : 0, inner = sane ? (size_t)modes[0] : 0;
    size_t        count = has_polynomial ? cubature_polynomial_count((int)inner) : 0;
    const double *U = fem_store_find(store, "U", FEM_STORE_DOUBLE, (size_t)n * r);
    const double *omega2 = fem_store_find(store, "omega2", FEM_STORE_DOUBLE, r);
    int          *materials = fem_alloc((size_t)mesh->material_count, sizeof *materials);
    if (!materials) return fem_fail(FEM_NO_MEMORY, "no memory for %d materials", mesh->material_count);
    int groups = has_polynomial ? find_groups(mesh, materials) : 0, sets = 0;
    for (int g = 0; g < groups; g++) sets += mesh->materials[materials[g]].kind == FEM_ORTHOTROPIC ? 9 : 2;
    const double *set = fem_store_find(store, "sets", FEM_STORE_DOUBLE, (size_t)sets * count);
    const double *mass = fem_store_find(store, "mass", FEM_STORE_DOUBLE, (size_t)groups * inner * inner);
    if (!sane || size[2] != groups || size[3] != sets || !U || !omega2 || !set || !mass) {
        status = fem_fail(FEM_BAD_INPUT, "%s: its arrays are not those of this part", path);
        goto done;
    }
    FEM_TRY(modes_basis_allocate(basis, n, (int)r));
    memcpy(basis->U, U, (size_t)n * r * sizeof *U);
    memcpy(basis->omega2, omega2, r * sizeof *omega2);
    if (groups > 0) {
        FEM_TRY(cubature_polynomial_allocate(polynomial, (int)inner, groups, sets));
        memcpy(polynomial->sets, set, (size_t)sets * count * sizeof *set);
        memcpy(polynomial->mass, mass, (size_t)groups * inner * inner * sizeof *mass);
        for (int g = 0, first = 0; g < groups; g++) {
            const fem_material *material = &mesh->materials[materials[g]];
            int                 own = material->kind == FEM_ORTHOTROPIC ? 9 : 2;
            polynomial->groups[g] = (cubature_group){.material = *material, .first_set = first, .set_count = own};
            first += own;
        }
        cubature_polynomial_sum(polynomial);
    }
done:
    fem_free(materials);
    return status;
}

// How a domain shows the modes of the whole; files of before have none.
static fem_status read_whole(const scene_stored *stored, const fem_store *store) {
    size_t        count = fem_store_count(store, "whole");
    const double *whole = fem_store_find(store, "whole", FEM_STORE_DOUBLE, FEM_STORE_ANY);
    if (!stored->whole_count || !whole || count < 2 || count % 2 != 0 || count > 2000) return FEM_OK;
    *stored->whole = fem_copy(whole, count, sizeof *whole);
    if (!*stored->whole) return fem_fail(FEM_NO_MEMORY, "no memory for %zu numbers", count);
    *stored->whole_count = (int)(count / 2);
    return FEM_OK;
}

fem_status scene_class_read(const scene_stored *stored, const fem_mesh *mesh, bool has_polynomial,
                            const cubature_training_options *training, fem_hash key, const char *path) {
    fem_status status = FEM_OK;
    fem_store  store = {0};
    FEM_TRY(fem_store_read(&store, path, "class", CLASS_VERSION));
    if (!fem_hash_equal(store.key, key)) {
        status = fem_fail(FEM_BAD_INPUT, "%s: is the class of something else", path);
        goto done;
    }
    FEM_TRY(fill_class(stored, mesh, has_polynomial, &store, path));
    if (training) FEM_TRY(scene_cubature_read(stored, mesh, training, &store, path));
    FEM_TRY(read_whole(stored, &store));
done:
    fem_store_destroy(&store);
    return status;
}

// ---- making --------------------------------------------------------------------------------------------------------

// Static shapes under the loads of a sketch, n x load_count.
static fem_status solve_sketch(const scene_part *part, const fem_body *body, const unsigned char *fixed,
                               const fem_progress *progress, double **shapes) {
    fem_status     status = FEM_OK;
    int            count = part->modes.load_count;
    size_t         n = 3 * (size_t)part->mesh.vertex_count;
    double        *loads = fem_calloc(n * (size_t)count, sizeof *loads), *u = fem_calloc(n * (size_t)count, sizeof *u);
    solver_options options = solver_default_options();
    if (!loads || !u) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for a sketch of %d loads", count);
        goto done;
    }
    for (int i = 0; i < count; i++) FEM_TRY(scene_load_force(&part->modes.loads[i], body, loads + n * (size_t)i));
    FEM_TRY(solver_sketch(body, fixed, &options, count, loads, progress, u));
    *shapes = u;
    u = NULL;
done:
    fem_free(loads);
    fem_free(u);
    return status;
}

static fem_status read_basis(scene_class *c, const scene_part *part) {
    fem_status  status = FEM_OK;
    modes_basis all = {0};
    int         n = 3 * part->mesh.vertex_count, count = part->modes.recipe.count;
    FEM_TRY(modes_basis_read(&all, NULL, part->modes.file));
    if (all.n != n)
        status = fem_fail(FEM_BAD_INPUT, "%s: is a basis for %d vertices, the part \"%s\" has %d", part->modes.file,
                          all.n / 3, part->name, n / 3);
    else if (all.r < count)
        status = fem_fail(FEM_BAD_INPUT, "%s: holds %d modes, but %d were asked for (parts.%s.modes.count)",
                          part->modes.file, all.r, count, part->name);
    if (status != FEM_OK) goto done;
    FEM_TRY(modes_basis_allocate(&c->basis, n, count));
    memcpy(c->basis.U, all.U, (size_t)n * (size_t)count * sizeof *all.U);
    memcpy(c->basis.omega2, all.omega2, (size_t)count * sizeof *all.omega2);
done:
    modes_basis_destroy(&all);
    return status == FEM_IO ? FEM_BAD_INPUT : status;
}

static fem_status make_basis(scene_class *c, const scene_part *part, const fem_body *body, const modes_problem *problem,
                             const fem_progress *progress) {
    fem_status status = FEM_OK;
    double    *shapes = NULL;
    if (part->modes.method == SCENE_MODES_FILE) return read_basis(c, part);
    if (part->modes.method == SCENE_MODES_SKETCH) {
        FEM_TRY(solve_sketch(part, body, problem->fixed, progress, &shapes));
        FEM_TRY(modes_build_sketch(problem, part->modes.load_count, shapes, &part->modes.recipe, &c->basis, NULL));
    } else {
        FEM_TRY(modes_build(problem, body, &part->modes.recipe, NULL, progress, &c->basis, NULL));
    }
done:
    fem_free(shapes);
    return status;
}

static fem_status make_forces(scene_class *c, const scene_part *part, const fem_body *body, const fem_sparse *K,
                              const fem_sparse *M, const char *path, fem_hash key, const fem_progress *progress) {
    cubature_polynomial_options options = cubature_polynomial_default_options();
    if (part->forces == SCENE_POLYNOMIAL)
        return cubature_polynomial_create(&c->polynomial, body, c->basis.r, c->basis.U, &options, progress);
    if (part->forces == SCENE_CUBATURE) return scene_cubature_train(c, part, body, K, M, path, key, progress);
    return FEM_OK;
}

// Within the limit of memory, if there is one.
static fem_status check_memory(scene_class *c, const scene_part *part, const fem_sparse *K,
                               const unsigned char *fixed) {
    fem_status          status = FEM_OK;
    const modes_recipe *recipe = &part->modes.recipe;
    solver_room        *room = NULL;
    double              bytes = 0, kept;
    solver_need         need = {.mesh = &part->mesh,
                                .K = K,
                                .fixed = fixed,
                                .recipe = recipe,
                                .modes = recipe->count,
                                .polynomial = part->forces == SCENE_POLYNOMIAL,
                                .direct = part->modes.method == SCENE_MODES_LANCZOS};
    FEM_TRY(solver_room_create(&room, recipe->max_bytes));
    FEM_TRY(solver_need_bytes(&need, &bytes, &kept));
    solver_room_enter(room);
    status = solver_room_take(room, bytes);
    solver_room_leave(room, status == FEM_OK ? bytes : 0, 0);
    c->room = solver_room_get_report(room);
done:
    solver_room_destroy(room);
    return status;
}

// `path` is that of the cache file, beside which an interrupted training keeps what it has; or NULL.
static fem_status make_class(scene_class *c, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                             const char *path, fem_hash key, const fem_progress *progress) {
    fem_status     status = FEM_OK;
    fem_sparse     K = {0}, M = {0};
    size_t         n = 3 * (size_t)part->mesh.vertex_count;
    unsigned char *fixed = fem_calloc(n, 1);
    double        *u = fem_calloc(n, sizeof *u), begun = fem_seconds();
    if (!fixed || !u) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu degrees of freedom", n);
        goto done;
    }
    for (int i = 0; i < part->fixed.count; i++) memset(fixed + 3 * (size_t)part->fixed.items[i], 1, 3);
    FEM_TRY(fem_body_matrix(body, &K));
    FEM_TRY(fem_body_matrix(body, &M));
    fem_body_evaluate(body, u, NULL, NULL, &K);
    fem_body_mass(body, mass, &M);
    modes_problem problem = {.mesh = &part->mesh, .K = &K, .M = &M, .fixed = part->fixed.count > 0 ? fixed : NULL};
    bool          built = part->modes.method == SCENE_MODES_KRYLOV || part->modes.method == SCENE_MODES_LANCZOS;
    if (built && part->modes.recipe.max_bytes > 0) FEM_TRY(check_memory(c, part, &K, problem.fixed));
    FEM_TRY(make_basis(c, part, body, &problem, progress));
    c->seconds_modes = fem_seconds() - begun;
    begun = fem_seconds();
    FEM_TRY(make_forces(c, part, body, &K, &M, path, key, progress));
    c->seconds_forces = fem_seconds() - begun;
done:
    fem_free(fixed);
    fem_free(u);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    return status;
}

// ---- what is not stored --------------------------------------------------------------------------------------------

// K0 = U^T K(0) U, M = U^T M U, column by column.
static void project_matrix(const modes_basis *basis, const fem_sparse *A, double *work, double *projected) {
    size_t n = (size_t)basis->n, r = (size_t)basis->r;
    for (size_t j = 0; j < r; j++) {
        fem_sparse_multiply(A, 1, basis->U + j * n, work);
        dense_gemv_t_set(basis->n, basis->r, 1, basis->U, work, projected + j * r);
    }
}

// The forces, and the reduced mass: the identity but for rounding where the basis was made from this mass.
static fem_status finish_class(scene_class *c, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                               bool forces) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)c->basis.n, r = (size_t)c->basis.r;
    fem_sparse A = {0};
    double    *work = fem_calloc(n, sizeof *work);
    c->M = fem_calloc(r * r, sizeof *c->M);
    c->K0 = fem_calloc(r * r, sizeof *c->K0);
    if (!work || !c->M || !c->K0) {
        status = fem_fail(FEM_NO_MEMORY, "no memory for %zu modes", r);
        goto done;
    }
    FEM_TRY(fem_body_matrix(body, &A));
    if (!forces) { // they are there
    } else if (part->forces == SCENE_LINEAR) {
        fem_body_evaluate(body, work, NULL, NULL, &A);
        project_matrix(&c->basis, &A, work, c->K0);
        c->linear = (cubature_linear){.r = (int)r, .K0 = c->K0};
        c->forces = cubature_linear_forces(&c->linear);
    } else if (part->forces == SCENE_POLYNOMIAL) {
        c->forces = cubature_polynomial_forces(&c->polynomial);
    } else if (part->forces == SCENE_CUBATURE) {
        FEM_TRY(scene_cubature_finish(c, body));
        c->forces = cubature_rule_forces(&c->rule);
    } else {
        FEM_TRY(cubature_full_create(&c->full, body, (int)r, c->basis.U));
        c->forces = cubature_full_forces(c->full);
    }
    fem_body_mass(body, mass, &A);
    project_matrix(&c->basis, &A, work, c->M);
    for (size_t i = 0; i < r; i++) // symmetric to the last bit
        for (size_t j = 0; j < i; j++) c->M[i * r + j] = c->M[j * r + i];
done:
    fem_free(work);
    fem_sparse_destroy(&A);
    return status;
}

fem_status scene_class_complete(scene_class *c, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                                bool forces, const fem_progress *progress) {
    fem_status status = FEM_OK;
    fem_sparse K = {0}, M = {0};
    double    *u = fem_calloc((size_t)c->basis.n, sizeof *u);
    if (!u) return fem_fail(FEM_NO_MEMORY, "no memory for %d degrees of freedom", c->basis.n);
    if (forces && part->forces == SCENE_CUBATURE) {
        FEM_TRY(fem_body_matrix(body, &K));
        FEM_TRY(fem_body_matrix(body, &M));
        fem_body_evaluate(body, u, NULL, NULL, &K);
        fem_body_mass(body, mass, &M);
    }
    if (forces) FEM_TRY(make_forces(c, part, body, &K, &M, NULL, (fem_hash){0}, progress));
    FEM_TRY(finish_class(c, part, body, mass, forces));
done:
    fem_free(u);
    fem_sparse_destroy(&K);
    fem_sparse_destroy(&M);
    return status;
}

// ---- the whole -----------------------------------------------------------------------------------------------------

fem_status scene_add_note(char **notes, const char *text) {
    size_t old = *notes ? strlen(*notes) : 0, more = strlen(text);
    char  *grown = fem_realloc(*notes, old + more + 2, 1);
    if (!grown) return fem_fail(FEM_NO_MEMORY, "no memory for a note");
    memcpy(grown + old, text, more);
    memcpy(grown + old + more, "\n", 2);
    *notes = grown;
    return FEM_OK;
}

// FOLDER/PART-HASH.class; the folder and those above it are made.
fem_status scene_cache_path(char **path, const char *cache, const char *part, fem_hash key) {
    char   hash[FEM_HASH_TEXT];
    size_t size = strlen(cache) + strlen(part) + FEM_HASH_TEXT + 16;
    char  *made = fem_alloc(size, 1);
    if (!made) return fem_fail(FEM_NO_MEMORY, "no memory for the name of a cache file");
    snprintf(made, size, "%s/%s-%s.class", cache, part, fem_hash_text(hash, key));
    for (char *c = made + 1; *c; c++) {
        if (*c != '/') continue;
        *c = 0;
        if (mkdir(made, 0777) != 0 && errno != EEXIST) {
            fem_status status = fem_fail(FEM_IO, "the cache folder %s cannot be made: %s", made, strerror(errno));
            fem_free(made);
            return status;
        }
        *c = '/';
    }
    *path = made;
    return FEM_OK;
}

// A file that is not what it should be is said and made anew; a cache that cannot be written is said and done without.
static fem_status create_cached(scene_class *c, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                                const char *cache, const fem_progress *progress, char **notes) {
    fem_status         status = FEM_OK;
    char              *path = NULL, text[1200];
    fem_hash           key = class_key(part, mass);
    const scene_stored stored = {
        .basis = &c->basis, .polynomial = &c->polynomial, .rule = &c->rule, .training = &c->training};
    if (part->modes.method == SCENE_MODES_FILE) { // what determines the class is what the file holds
        FEM_TRY(read_basis(c, part));
        key = fem_hash_add(key, c->basis.U, (size_t)c->basis.n * (size_t)c->basis.r * sizeof *c->basis.U);
        modes_basis_destroy(&c->basis);
    }
    if (part->poses && part->forces == SCENE_CUBATURE) { // likewise
        int     count = 0;
        double *u = NULL;
        FEM_TRY(scene_poses_read(part, &count, &u));
        key = fem_hash_add(key, u, (size_t)count * 3 * (size_t)part->mesh.vertex_count * sizeof *u);
        fem_free(u);
    }
    status = scene_cache_path(&path, cache, part->name, key);
    if (status == FEM_IO) {
        FEM_TRY(scene_add_note(notes, fem_message()));
        return make_class(c, part, body, mass, NULL, key, progress);
    }
    FEM_TRY(status);
    status = scene_class_read(&stored, &part->mesh, part->forces == SCENE_POLYNOMIAL,
                              part->forces == SCENE_CUBATURE ? &part->training : NULL, key, path);
    if (status == FEM_OK) {
        c->cached = c->kept = true;
        goto done;
    }
    if (status == FEM_NO_MEMORY) goto done;
    if (status != FEM_IO) {
        snprintf(text, sizeof text, "%.1000s; it is computed again", fem_message());
        FEM_TRY(scene_add_note(notes, text));
    }
    modes_basis_destroy(&c->basis);
    cubature_polynomial_destroy(&c->polynomial);
    cubature_rule_destroy(&c->rule);
    FEM_TRY(make_class(c, part, body, mass, path, key, progress));
    if (c->rule.count > 0) {
        snprintf(text, sizeof text, "%.1100s.vtu", path);
        if (scene_cubature_write(&c->rule, &part->mesh, text) != FEM_OK) FEM_TRY(scene_add_note(notes, fem_message()));
    }
    c->kept = scene_class_write(&stored, key, path) == FEM_OK;
    if (!c->kept) {
        snprintf(text, sizeof text, "%.1000s; the class is not kept", fem_message());
        FEM_TRY(scene_add_note(notes, text));
    }
done:
    fem_free(path);
    return status;
}

fem_status scene_class_create(scene_class **class, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                              const char *cache, const fem_progress *progress, char **notes) {
    fem_status   status = FEM_OK;
    char        *text = NULL;
    scene_class *c = fem_calloc(1, sizeof *c);
    if (!c) return fem_fail(FEM_NO_MEMORY, "no memory for a class");
    if (cache)
        FEM_TRY(create_cached(c, part, body, mass, cache, progress, notes));
    else
        FEM_TRY(make_class(c, part, body, mass, NULL, (fem_hash){0}, progress));
    FEM_TRY(finish_class(c, part, body, mass, true));
    FEM_TRY(scene_cubature_note(c, part, &text));
    if (text) FEM_TRY(scene_add_note(notes, text));
    *class = c;
    c = NULL;
done:
    fem_free(text);
    scene_class_destroy(c);
    if (status != FEM_OK) fem_fail_prefix(status, "part \"%s\": ", part->name);
    return status;
}

void scene_class_destroy(scene_class *c) {
    if (!c) return;
    modes_basis_destroy(&c->basis);
    cubature_polynomial_destroy(&c->polynomial);
    for (int i = 0; i < c->part_count; i++) cubature_polynomial_destroy(&c->parts[i]);
    fem_free(c->parts);
    cubature_pieces_destroy(c->pieces);
    cubature_full_destroy(c->full);
    cubature_rule_destroy(&c->rule);
    cubature_stitched_destroy(c->springs);
    fem_body_destroy(c->body);
    fem_mesh_destroy(&c->mesh);
    fem_free(c->K0);
    fem_free(c->M);
    fem_free(c->carried);
    fem_free(c);
}
